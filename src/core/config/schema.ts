// Every environment variable of the runtime, and the type of the settings that they give.
import { availableParallelism, hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type Above,
  choice,
  file,
  flag,
  folder,
  folders,
  fraction,
  HOST,
  list,
  NAME,
  NETWORK,
  ORIGIN,
  type Row,
  text,
  whole,
} from './kinds.ts'

const DAY_MS = 86_400_000
const PORT_RANGE = { min: 1, max: 65_535 } as const
const NO_BLANKS = { pattern: /^\S+$/, wanted: 'a string without blanks' } as const
const TLS_MODES = ['off', 'require', 'verify'] as const

/** What a bearer token can be made of (RFC 6750), and long enough not to be guessed. */
const TOKEN = {
  pattern: /^[A-Za-z0-9\-._~+/=]{16,1024}$/,
  wanted: 'at least 16 of the characters A-Z a-z 0-9 - . _ ~ + / =',
} as const

/** Enough to notice that threads do not share their memory. With more of them a change of the code takes longer to reach all. */
const DEVELOPED_LANES = 2

/** An entry of AUTH_SECRET_KEYS. */
const KEY_ENTRY = '[A-Za-z0-9._-]{1,64}:[^\\s,]{32,}'

const TOOLS_FOLDER = fileURLToPath(new URL('../../tools', import.meta.url))

/** The listener, and who may reach what. */
const HTTP = {
  HTTP_HOST: text({ ...NO_BLANKS, default: '127.0.0.1' }, 'Address to listen on.'),
  HTTP_PORT: whole({ min: 0, max: 65_535, default: 8000 }, 'Port to listen on; 0: any free port.'),
  HTTP_LISTENER: choice(
    ['auto', 'uws', 'node'],
    'auto',
    'What serves HTTP: uWebSockets.js (`uws`), or node:http (`node`); `auto`: uWebSockets.js where it has a binary for the platform, else node:http.',
  ),
  HTTP_REUSE_PORT: flag(
    false,
    'Lets several processes with this setting listen on one port (not 0); the kernel spreads connections over them.',
  ),
  HTTP_ALLOWED_HOSTS: list(
    HOST,
    'Names that a request may have in `Host`, else 421; `*.example.com`: every name below, `*`: any. Unset: loopback names and `HTTP_HOST` on a loopback host, else any.',
  ),
  HTTP_CORS_ORIGINS: list(ORIGIN, 'Origins whose pages may call the service; empty: none, `*`: all.'),
  HTTP_CORS_CREDENTIALS: flag(
    false,
    'Browsers may send cookies with the requests of those pages, and give them the answers; not with `*`.',
  ),
  HTTP_COMPRESSION: flag(
    false,
    'Compresses answers of lanes of 1 KiB or more (JSON and text) with brotli or gzip for clients that accept it: where no proxy does.',
  ),
  HTTP_TRUSTED_PROXIES: list(
    NETWORK,
    'Proxies whose `X-Forwarded-For` decides `context.ip`: its rightmost address that is none of them. Empty: the address of the connection.',
  ),
  SYSTEM_TOKEN: text(
    { ...TOKEN, secret: true },
    'Token that `/system/*` wants, as bearer or from the login page; unset, with no `SYSTEM_PORT`: it is open, but closed in production with `HTTP_TRUSTED_PROXIES` or `HTTP_ALLOWED_HOSTS`.',
  ),
  SYSTEM_READ_TOKEN: text(
    { ...TOKEN, secret: true },
    'Token with which `/system/*` may be read and nothing be changed.',
  ),
  SYSTEM_PORT: whole(
    { min: 0, max: 65_535 },
    'Port that alone serves `/system/*`, which is then 404 on `HTTP_PORT`, but for its health; 0: any free port. Of several `PROCESSES` each has its own: this one, the next, …',
  ),
  SYSTEM_HOST: text({ ...NO_BLANKS, default: '127.0.0.1' }, 'Address of `SYSTEM_PORT`.'),
  HTTP_BODY_LIMIT: whole(
    { min: 1, max: 1_073_741_824, default: 1_048_576, unit: 'bytes' },
    'Largest request body; a larger one is answered with 413.',
  ),
  HTTP_MAX_STREAMS: whole(
    { min: 1, max: 60_000, default: 10_000, unit: 'streams' },
    'Most event streams, WebSockets and long answers that are open at a time, which hold no place in `LANE_MAX_INFLIGHT`; a further one is answered with 503.',
  ),
  HTTP_MAX_STREAMS_PER_ROUTE: whole(
    { min: 1, max: 60_000, default: 5000, unit: 'streams' },
    'Most of them on one route, so that the others have room.',
  ),
  HTTP_MAX_STREAMS_PER_ADDRESS: whole(
    { min: 1, max: 60_000, default: 100, unit: 'streams' },
    'Most of them for one client: an IPv4 address, or the /64 network of an IPv6 address; behind `HTTP_TRUSTED_PROXIES` that of the client.',
  ),
  HTTP_HANDLER_TIMEOUT_MS: whole(
    { min: 1, max: DAY_MS, default: 30_000, unit: 'ms' },
    'Timeout of a handler; a request that takes longer is answered with 504.',
  ),
}

function lanesByDefault({ processes }: Above, isDevelopment: boolean): number {
  // Each process has a primary thread beside its lanes.
  const free = Math.floor(availableParallelism() / Number(processes ?? 1)) - 1
  return Math.max(1, Math.min(free, isDevelopment ? DEVELOPED_LANES : 256))
}

/** Threads, and the life of the process. */
const PROCESS = {
  PROCESSES: whole(
    { min: 1, max: 99, default: 1, unit: 'processes' },
    'Processes that `npm start` runs on one port, each with its own lanes; `npm run dev` and `--boot-tool` run one.',
  ),
  LANES: whole(
    { min: 1, max: 256, default: lanesByDefault, unit: 'threads' },
    'Number of worker threads of a process that run the plugins.',
  ),
  LANE_MAX_INFLIGHT: whole(
    { min: 1, max: 65_535, default: 1024, unit: 'requests' },
    'Most requests in one lane that wait for the header of their answer, with those that were given up and whose handlers have not settled; if every lane is full, the answer is 503.',
  ),
  LANE_STALL_MS: whole(
    { min: 50, max: DAY_MS, default: 10_000, unit: 'ms' },
    'A lane that is blocked for longer is replaced, unless a debugger holds it.',
  ),
  LANE_MEMORY_MB: whole(
    { min: 32, max: 1_048_576, default: 512, unit: 'MiB' },
    'Largest JavaScript heap of a lane; a lane that needs more is replaced.',
  ),
  LANE_ENV: list(
    NAME,
    'Variables that libraries in lanes read from `process.env`, beside those of Node and the system. A plugin reads its own with `config.get`.',
  ),
  LANE_FREEZE_BUILTINS: flag(
    false,
    'Whether nothing in a lane can replace what JavaScript brings (`JSON.parse`, `Array.prototype.map`): such an assignment is without effect, or throws.',
  ),
  UV_THREADPOOL_SIZE: whole(
    { min: 1, max: 1024, unit: 'threads' },
    'Threads for files and DNS, fixed before the start; unset, `npm start` takes 4 × cores, at least 16.',
  ),
  POOL_STALL_MS: whole(
    { min: 100, max: DAY_MS, default: 5000, unit: 'ms' },
    'The process is not ready while that pool lets a call wait for longer.',
  ),
  BOOT_STRICT: flag(
    false,
    'Whether the process is not ready when a plugin is dead at its start, until a reload fixes it: a rolling update stops there.',
  ),
  SHUTDOWN_DELAY_MS: whole(
    { min: 0, max: DAY_MS, default: 0, unit: 'ms' },
    'After SIGTERM the process is not ready for so long while it still serves, for balancers that ask now and then; then it drains.',
  ),
  SHUTDOWN_TIMEOUT_MS: whole(
    { min: 0, max: DAY_MS, default: 10_000, unit: 'ms' },
    'Time of the drain; what runs then is handed back, and the process ends.',
  ),
  GUARDIAN: flag(
    true,
    'Whether `npm start` starts the service again when its process dies. False where a supervisor does.',
  ),
  PRIMARY_STALL_MS: whole(
    { min: 1000, max: DAY_MS, default: 10_000, unit: 'ms' },
    'The guardian ends and restarts a process whose main thread is blocked for longer.',
  ),
  CRASH_REPORTS_DIR: folder(
    'data/crashes',
    'Where the guardian keeps its reports of the last 20 deaths of the process.',
  ),
  NODE_ENV: text(
    { default: 'development' },
    '`npm start` and `heddle start` set `production` where it is unset. Unless it is that, answers are checked against the `response` schemas of their routes, and the log warns of events that no contract declares.',
  ),
  NODE_APP_INSTANCE: whole(
    { min: 0, max: 1_000_000 },
    'Number of this process, set by a supervisor that runs several processes of one service (pm2 does).',
  ),
  NOTIFY_SOCKET: text(
    { unit: 'path of a socket' },
    'Set by systemd for a unit of `Type=notify`: the process reports there when it is ready, reloads and stops.',
  ),
  WATCHDOG_USEC: whole(
    { min: 1, max: Number.MAX_SAFE_INTEGER, unit: 'µs' },
    'Set by systemd for `WatchdogSec`: it ends a process whose main thread has not turned for so long.',
  ),
  WATCHDOG_PID: whole(
    { min: 1, max: Number.MAX_SAFE_INTEGER, unit: 'process id' },
    'Set by systemd with `WATCHDOG_USEC`: the process that reports; another one does not.',
  ),
}

/** The database of `db`. */
const DATABASE = {
  SQLITE_PATH: file('data/service.db', 'File of the embedded database.'),
  SQLITE_SYNCHRONOUS: choice(
    ['full', 'normal'],
    'full',
    'What a power cut may take from SQLite: `full`: nothing acknowledged; `normal`: the last writes. Neither harms the file.',
  ),
  DATABASE_URL: text(
    { unit: 'postgres://user:password@host:port/database', secret: true },
    'Fills those of `RDB_HOST`, `_PORT`, `_USER`, `_PASSWORD`, `_DATABASE`, `_SCHEMA`, `_TLS` and `_CA_FILE` that are unset.',
  ),
  RDB_HOST: text({ ...NO_BLANKS, default: 'localhost' }, 'Host of the database server.'),
  RDB_PORT: whole({ ...PORT_RANGE, default: 5432 }, 'Port of the database server.'),
  RDB_USER: text({ default: 'postgres' }, 'User on the database server.'),
  RDB_PASSWORD: text({ secret: true }, 'Password of `RDB_USER`; unset: none.'),
  RDB_DATABASE: text({ default: 'service' }, 'Name of the database on the server.'),
  RDB_SCHEMA: text(
    {
      pattern: /^(?!pg_)[A-Za-z_][\w-]{0,62}$/,
      wanted: 'the name of a schema: letters, digits, _ and -, not pg_…',
      default: 'public',
    },
    'Schema of all tables: the `search_path` of each connection, whatever is set for the user. Made where it is missing, with `DB_AUTO_MIGRATE`.',
  ),
  RDB_TLS: choice(
    TLS_MODES,
    'off',
    'Encryption of all connections to the database server: `off`: none; `require`: any certificate; `verify`: one for `RDB_HOST` by an authority that is trusted.',
  ),
  RDB_CA_FILE: text(
    { unit: 'path of a PEM file' },
    'Certificates of the authorities that `RDB_TLS=verify` trusts; unset: those that Node trusts.',
  ),
  RDB_ALLOW_CLEARTEXT_PASSWORD: flag(
    false,
    'Sends `RDB_PASSWORD` in plain text to a server that asks for it, even without TLS.',
  ),
  RDB_MAX_POOL: whole(
    { min: 1, max: 10_000, default: 10, unit: 'connections' },
    'Most connections of the process, divided among the lanes.',
  ),
  RDB_MIN_POOL: whole(
    { min: 0, max: 10_000, default: (above) => Math.min(2, Number(above.rdbMaxPool ?? 2)), unit: 'connections' },
    'Connections that the process keeps open, divided among the lanes.',
  ),
  RDB_STATEMENT_TIMEOUT_MS: whole(
    { min: 100, max: DAY_MS, default: 30_000, unit: 'ms' },
    'Timeout of a statement, after which it is ended; on SQLite of those that can be endless. Migrations have none.',
  ),
  DB_AUTO_MIGRATE: flag(true, 'Applies pending migrations at the start.'),
  HEALTH_CHECK_INTERVAL: fraction({ min: 0.05, max: 86_400, default: 30, unit: 's' }, 'Interval of the health checks.'),
}

/** State, and the key-value store. */
const STORE = {
  STATE_MAX_BYTES: whole(
    { min: 65_536, max: 68_719_476_736, default: 268_435_456, unit: 'bytes' },
    'What the in-memory state takes, by estimate; one plugin may take half, one namespace three quarters (STATE_QUOTA).',
  ),
  REDIS_URL: text(
    { unit: 'redis://user:password@host:port/number', secret: true },
    'Fills those of `KV_HOST`, `_PORT`, `_USER`, `_PASSWORD`, `_DB` and `_TLS` that are unset; rediss:// is `KV_TLS=verify`.',
  ),
  KV_HOST: text({ ...NO_BLANKS, default: 'localhost' }, 'Host of the key-value store.'),
  KV_PORT: whole({ ...PORT_RANGE, default: 6379 }, 'Port of the key-value store.'),
  KV_DB: whole({ min: 0, max: 1_000_000, default: 0 }, 'Number of the database in the store.'),
  KV_USER: text(
    { ...NO_BLANKS },
    "User (ACL) of the store, whose password is `KV_PASSWORD`; unset: the store's default user.",
  ),
  KV_PASSWORD: text({ default: '', secret: true }, 'Password of the store; empty: no authentication.'),
  KV_TLS: choice(
    TLS_MODES,
    'off',
    'Encryption of all connections to the store: `off`: none; `require`: any certificate; `verify`: one for `KV_HOST` by an authority that is trusted.',
  ),
  KV_CA_FILE: text(
    { unit: 'path of a PEM file' },
    'Certificates of the authorities that `KV_TLS=verify` trusts; unset: those that Node trusts.',
  ),
  KV_CONNECT_TIMEOUT: fraction(
    { min: 0.05, max: 3600, default: 5, unit: 's' },
    'Timeout of a connection attempt to the store.',
  ),
}

/** Events and jobs. */
const EVENTS = {
  EVENT_BUS_DRIVER: choice(
    ['database', 'in_process', 'keyvalue_streams'],
    'database',
    'Transport of events: in the database, where they outlive the process; within this process, which forgets them at its end; or streams of the key-value store that all replicas share.',
  ),
  EVENT_BUS_MAX_QUEUE: whole(
    { min: 1, max: 10_000_000, default: 100_000, unit: 'events' },
    'Most events that wait in process; above it, `publish` rejects with EVENT_BUS_FULL.',
  ),
  EVENT_BUS_MAX_STORED: whole(
    { min: 1, max: 100_000_000, default: 1_000_000, unit: 'events' },
    'Most events that the database keeps; above it, `publish` rejects with EVENT_BUS_FULL.',
  ),
  EVENT_BUS_INBOX_KEEP_MS: whole(
    { min: 1000, max: 366 * DAY_MS, default: 7 * DAY_MS, unit: 'ms' },
    'How long it is known that a transactional subscriber has handled an event, for deliveries that come again: longer than the broker, or what it waits for, is ever away.',
  ),
  EVENT_BUS_MAX_NAMES: whole(
    { min: 1, max: 100_000, default: 1000, unit: 'event names' },
    'Different events that one plugin publishes; `publish` of a further name rejects with EVENT_NAMES_LIMIT.',
  ),
  EVENT_BUS_MAX_SUBSCRIPTIONS: whole(
    { min: 1, max: 100_000, default: 1000, unit: 'subscriptions' },
    'Subscriptions of one plugin in one thread; a further one throws EVENT_SUBSCRIPTIONS_LIMIT.',
  ),
  EVENT_BUS_WAIT_FOR_TOOLS: flag(
    true,
    'A delivery that has failed because a tool was away waits until that is back, and the attempt does not count; false: it counts as any other.',
  ),
  EVENT_BUS_MAX_DEAD_BYTES: whole(
    { min: 1_048_576, max: 68_719_476_736, default: 67_108_864, unit: 'bytes' },
    'What the dead letters take, in this process or in the store; beyond it the oldest are dropped, and counted.',
  ),
  EVENT_BUS_CLAIM_IDLE_MS: whole(
    { min: 50, max: DAY_MS, default: 60_000, unit: 'ms' },
    'Stream driver: another consumer claims a delivery that has been idle for longer.',
  ),
  EVENT_BUS_STREAM_MAXLEN: whole(
    { min: 1, max: Number.MAX_SAFE_INTEGER, unit: 'entries' },
    'Stream driver: approximate limit per stream; unset: unread entries are never trimmed.',
  ),
  SCHEDULER_ENABLED: flag(
    ({ nodeAppInstance }) => !nodeAppInstance,
    'Jobs may run in this process: of all with true that share a PostgreSQL database one is elected. Without a database set it on one only.',
  ),
}

/** Tokens and passwords. */
const AUTH = {
  AUTH_SECRET_KEY: text(
    { pattern: /^(?!.*-----BEGIN).{32,}$/s, wanted: 'at least 32 characters, but not a PEM key', secret: true },
    'Key that signs tokens; the same on all replicas. Unset on a loopback host, without `AUTH_SECRET_KEYS`: a random key.',
  ),
  // Up to 16: a token without a key id may be tried with each.
  AUTH_SECRET_KEYS: text(
    {
      pattern: new RegExp(`^(?!.*-----BEGIN)\\s*${KEY_ENTRY}(?:\\s*,\\s*${KEY_ENTRY}){0,15}\\s*$`, 's'),
      wanted:
        '1 to 16 of kid:secret with commas between them, each secret of at least 32 characters without blanks and commas',
      secret: true,
    },
    'Keys with ids, to change them while tokens are about: the first signs, all are accepted, as is `AUTH_SECRET_KEY`.',
  ),
  AUTH_ISSUER: text({}, 'The `iss` of own tokens; set, others are refused.'),
  AUTH_AUDIENCE: text({}, 'The `aud` of tokens; set, those for others are refused.'),
  AUTH_JWKS_URL: text(
    {
      pattern: /^(?:https:\/\/|http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])[:/])\S+$/,
      wanted: 'an https URL, or an http one on a loopback host',
      unit: 'URL',
    },
    'Keys of an identity provider whose tokens are accepted, too; needs `AUTH_JWKS_ISSUER` and `AUTH_AUDIENCE`.',
  ),
  AUTH_JWKS_ISSUER: text({}, "The `iss` of that provider's tokens."),
  AUTH_TOKEN_TTL_SEC: whole({ min: 1, max: 315_360_000, default: 3600, unit: 's' }, 'Default lifetime of a token.'),
  AUTH_HASH_THREADS: whole(
    { min: 1, max: 64, default: () => Math.min(4, availableParallelism()), unit: 'threads' },
    'Threads of the process that hash passwords; each takes a core and 32 MiB while it does.',
  ),
  AUTH_HASH_QUEUE: whole(
    { min: 0, max: 100_000, default: 1000, unit: 'passwords' },
    'Passwords that wait for such a thread at most, 5 s each; who would wait longer is refused at once with AUTH_BUSY (503).',
  ),
}

/** Logs, health and traces. */
const OBSERVABILITY = {
  LOG_LEVEL: choice(
    ['debug', 'info', 'warning', 'error'],
    'info',
    'Lowest level that is written; sinks and `/system/logs/stream` always get INFO and above.',
    { warn: 'warning' },
  ),
  LOG_FORMAT: choice(
    ['pretty', 'json'],
    (_, isDevelopment) => (isDevelopment || process.stdout.isTTY ? 'pretty' : 'json'),
    'Format of the log lines; unset: pretty on a terminal and with `npm run dev`, else json.',
  ),
  LOG_BUFFER_BYTES: whole(
    { min: 65_536, max: 1_073_741_824, default: 16_777_216, unit: 'bytes' },
    'Log lines that wait while nobody reads standard output; beyond it the least important are dropped, and counted.',
  ),
  LOG_RECORD_BYTES: whole(
    { min: 1024, max: 1_048_576, default: 32_768, unit: 'bytes' },
    'Largest log record; the strings of a larger one are cut, and its size is its field `cut_bytes`.',
  ),
  LOG_PLUGIN_RATE: whole(
    { min: 1, max: 1_000_000, default: 5000, unit: 'records per second' },
    'Log records of one plugin in one thread; further ones are left out, and their number is logged. A fifth is for WARNING and ERROR.',
  ),
  HISTORY_ENABLED: flag(true, 'Keeps requests, and what they have caused, in a file.'),
  HISTORY_PATH: file(
    (above) => join(dirname(String(above.sqlitePath)), 'history.db'),
    'File of the history. Processes that share it show each other’s requests.',
  ),
  HISTORY_SAMPLE: fraction(
    { min: 0, max: 1, default: (above) => (above.nodeEnv === 'production' ? 0.01 : 1), unit: 'share of the requests' },
    'Share of the requests that are kept although they have neither failed nor were slow; 1: everything is kept.',
  ),
  HISTORY_HOURS: fraction(
    { min: 0.01, max: 8760, default: 24, unit: 'hours' },
    'Age at which a kept request is deleted.',
  ),
  HISTORY_MAX_MB: whole(
    { min: 1, max: 1_048_576, default: 200, unit: 'MiB' },
    'Size of the history from which on the oldest requests are deleted.',
  ),
  OTEL_ENABLED: flag(false, 'Exports spans; false: the SDK is never loaded.'),
  OTEL_SERVICE_NAME: text({ default: 'service' }, 'Name of this service in traces.'),
  OTEL_EXPORTER_OTLP_ENDPOINT: text(
    {
      pattern: /^(?:https?:\/\/)?(?:\[[0-9A-Fa-f:.]+\]|[^\s[\]/:@]+)(?::\d{1,5})?(?:\/\S*)?$/,
      wanted: 'a URL such as http://localhost:4317',
      unit: 'URL',
    },
    'OTLP receiver of traces (gRPC); unset: spans go to the console.',
  ),
  OTEL_EXPORTER_OTLP_HEADERS: text(
    {
      pattern: /^\s*[^=,\s]+\s*=[^,]*(?:,\s*[^=,\s]+\s*=[^,]*)*,?\s*$/,
      wanted: 'name=value pairs with commas between them',
      unit: 'comma-separated name=value pairs',
      secret: true,
    },
    'Headers sent to the receiver.',
  ),
  OTEL_BSP_SCHEDULE_DELAY: whole(
    { min: 1, max: DAY_MS, default: 5000, unit: 'ms' },
    'Time between two exports of spans; a full batch is exported at once.',
  ),
  OTEL_BSP_MAX_QUEUE_SIZE: whole(
    { min: 1, max: 10_000_000, default: 2048, unit: 'spans' },
    'Most spans of the process that wait for export; above it, the oldest are dropped.',
  ),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: whole(
    {
      min: 1,
      max: 1_000_000,
      default: (above) => Math.min(512, Number(above.otelBspMaxQueueSize ?? 512)),
      unit: 'spans',
    },
    'Most spans per export; at most the size of the queue.',
  ),
  OTEL_BSP_EXPORT_TIMEOUT: whole(
    { min: 1, max: DAY_MS, default: 30_000, unit: 'ms' },
    'Timeout of an export; its spans are then dropped.',
  ),
  OTEL_TRACES_SAMPLER: choice(
    [
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ],
    'parentbased_always_on',
    'Which traces are recorded; `parentbased`: for a trace from outside, its sender decides.',
  ),
  OTEL_TRACES_SAMPLER_ARG: fraction(
    { min: 0, max: 1, default: 1, unit: 'share of the traces' },
    'Share of the traces that the ratio samplers record.',
  ),
  OTEL_RESOURCE_ATTRIBUTES: text(
    { unit: 'comma-separated name=value pairs' },
    'Further attributes of this process in traces, for example `deployment.environment.name=staging`.',
  ),
}

/** The name of the process, and its folders. */
const IDENTITY = {
  // With port 0 the process id tells the replicas of one host apart.
  REPLICA_ID: text(
    {
      pattern: /^[A-Za-z0-9._:-]{1,200}$/,
      wanted: '1 to 200 of the characters A-Z a-z 0-9 . _ : -',
      default: ({ httpPort, nodeAppInstance }) =>
        `${hostname()}:${httpPort || `pid${process.pid}`}${nodeAppInstance === undefined ? '' : `:${nodeAppInstance}`}`,
    },
    'Name of this replica, unique and stable.',
  ),
  DOMAINS_DIR: folders('domains', 'Folders of domains (plugins, migrations, event contracts), in order.'),
  SYSTEM_DOMAIN: flag(
    true,
    'Whether the shipped domain `system`, which serves /system, is added where DOMAINS_DIR has none.',
  ),
  TOOLS_DIR: folder(TOOLS_FOLDER, 'Folder of the active tools.'),
  TOOLS: text(
    { pattern: /^[\w-]+(?:=[\w-]+)?(?:,\s*[\w-]+(?:=[\w-]+)?)*$/, wanted: 'implementations like postgres,redis-state' },
    'Implementations that replace those of the same tools, from the folder of the active tools or the one of the parked ones beside it. Default: `heddle.tools` of `package.json`.',
  ),
}

/**
 * Every environment variable of the runtime. The key of its setting is its name in camelCase: `HTTP_PORT` → `httpPort`.
 * Empty counts as unset.
 */
export const VARIABLES = {
  ...HTTP,
  ...PROCESS,
  ...DATABASE,
  ...STORE,
  ...EVENTS,
  ...AUTH,
  ...OBSERVABILITY,
  ...IDENTITY,
}

/** Variables that only these tools read. */
const OF_TOOLS: readonly (readonly [tools: readonly string[], variables: object])[] = [
  // Whether the secret has to be set depends on the address.
  [['http', 'auth'], HTTP],
  [['auth'], AUTH],
  [['db'], DATABASE],
  [['state', 'event_bus'], STORE],
]

/** The variables that the tool does not read. */
export function variablesOfOtherTools(tool: string): string[] {
  return OF_TOOLS.flatMap(([tools, variables]) => (tools.includes(tool) ? [] : Object.keys(variables)))
}

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Lowercase<Head>}${Capitalize<CamelCase<Tail>>}`
  : Lowercase<Name>

/** The parsed environment, deep-frozen; a plain object that can be posted to another thread. */
export type Settings = {
  readonly [Name in keyof typeof VARIABLES as CamelCase<Name>]: (typeof VARIABLES)[Name] extends Row<infer T>
    ? T
    : never
}

/** `HTTP_PORT` → `httpPort`. */
export function settingKey(name: string): string {
  return name.toLowerCase().replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}
