import { availableParallelism, hostname } from 'node:os'
import { fileURLToPath } from 'node:url'

interface RowOf<Type extends string, Default> {
  type: Type
  /** Used when the variable is unset or empty. A function gets the settings of the rows above its own, and whether `npm run dev` runs. */
  default: Default | ((above: Record<string, unknown>, isDevelopment: boolean) => Default)
  unit?: string
  /** What the variable changes, in one sentence. */
  effect: string
  /** Never shown in messages and never handed to plugins. */
  secret?: true
}
type Range = { min: number; max: number }

/** One variable. The defaults of `folder`, `folders` and `file` are resolved like given values. */
export type VariableRow =
  | (RowOf<'integer' | 'number', number | undefined> & Range)
  | RowOf<'boolean', boolean>
  | (RowOf<'choice', string> & { choices: readonly string[] })
  | (RowOf<'text', string | undefined> & { pattern?: RegExp; wanted?: string })
  | RowOf<'origins' | 'hosts' | 'names' | 'networks', readonly string[]>
  | RowOf<'folder' | 'folders' | 'file', string>

const DAY_MS = 86_400_000
const PORT_RANGE = { min: 1, max: 65_535 } as const
const NO_BLANKS = { pattern: /^\S+$/, wanted: 'a text without blanks' } as const
/** An entry of AUTH_SECRET_KEYS. */
const KEY_ENTRY = '[A-Za-z0-9._-]{1,64}:[^\\s,]{32,}'
const TLS_MODES = ['off', 'require', 'verify'] as const
/** What a bearer token can be made of (RFC 6750), and long enough not to be guessed. */
const TOKEN = {
  pattern: /^[A-Za-z0-9\-._~+/=]{16,1024}$/,
  wanted: 'at least 16 of the characters A-Z a-z 0-9 - . _ ~ + / =',
} as const
/** Enough to notice that threads do not share their memory. With more of them a change of the code takes longer to reach all. */
const DEVELOPED_LANES = 2
const TOOLS_FOLDER = fileURLToPath(new URL('../../tools', import.meta.url))

/**
 * Every environment variable of the runtime. The key of its setting is its name in camelCase: `HTTP_PORT` → `httpPort`.
 * Empty counts as unset.
 */
export const VARIABLES = {
  // HTTP
  HTTP_HOST: { type: 'text', ...NO_BLANKS, default: '127.0.0.1', effect: 'Address to listen on.' },
  HTTP_PORT: { type: 'integer', min: 0, max: 65_535, default: 8000, effect: 'Port to listen on; 0: any free port.' },
  HTTP_REUSE_PORT: {
    type: 'boolean',
    default: false,
    effect:
      'Lets several processes with this setting listen on one port (not 0); the kernel spreads connections over them.',
  },
  HTTP_ALLOWED_HOSTS: {
    type: 'hosts',
    default: [],
    unit: 'comma-separated host names',
    effect:
      'Names that a request may have in `Host`, else 421; `*.example.com`: every name below, `*`: any. Unset: loopback names and `HTTP_HOST` on a loopback host, else any.',
  },
  HTTP_CORS_ORIGINS: {
    type: 'origins',
    default: [],
    unit: 'comma-separated origins',
    effect: 'Origins whose pages may call the service; empty: none, `*`: all.',
  },
  HTTP_TRUSTED_PROXIES: {
    type: 'networks',
    default: [],
    unit: 'comma-separated addresses or networks',
    effect:
      'Proxies whose `X-Forwarded-For` decides `context.ip`: its rightmost address that is none of them. Empty: the address of the connection.',
  },
  SYSTEM_TOKEN: {
    type: 'text',
    ...TOKEN,
    default: undefined,
    secret: true,
    effect: 'Token that `/system/*` wants, as bearer or from the login page; unset, with no `SYSTEM_PORT`: it is open.',
  },
  SYSTEM_READ_TOKEN: {
    type: 'text',
    ...TOKEN,
    default: undefined,
    secret: true,
    effect: 'Token with which `/system/*` may be read and nothing be changed.',
  },
  SYSTEM_PORT: {
    type: 'integer',
    min: 0,
    max: 65_535,
    default: undefined,
    effect:
      'Port that alone serves `/system/*`, which is then 404 on `HTTP_PORT`, but for its health; 0: any free port.',
  },
  SYSTEM_HOST: { type: 'text', ...NO_BLANKS, default: '127.0.0.1', effect: 'Address of `SYSTEM_PORT`.' },
  HTTP_BODY_LIMIT: {
    type: 'integer',
    min: 1,
    max: 1_073_741_824,
    default: 1_048_576,
    unit: 'bytes',
    effect: 'Largest request body; a larger one is answered with 413.',
  },
  HTTP_HANDLER_TIMEOUT_MS: {
    type: 'integer',
    min: 1,
    max: DAY_MS,
    default: 30_000,
    unit: 'ms',
    effect: 'Timeout of a handler; a request that takes longer is answered with 504.',
  },

  // threads
  LANES: {
    type: 'integer',
    min: 1,
    max: 256,
    default: (_above, isDevelopment) =>
      Math.max(1, Math.min(availableParallelism() - 1, isDevelopment ? DEVELOPED_LANES : 256)),
    unit: 'threads',
    effect: 'Number of worker threads that run the plugins.',
  },
  LANE_MAX_INFLIGHT: {
    type: 'integer',
    min: 1,
    max: 65_535,
    default: 1024,
    unit: 'requests',
    effect: 'Most requests in one lane at a time; if every lane is full, the answer is 503.',
  },
  LANE_STALL_MS: {
    type: 'integer',
    min: 50,
    max: DAY_MS,
    default: 10_000,
    unit: 'ms',
    effect: 'A lane that is blocked for longer is replaced.',
  },
  LANE_MEMORY_MB: {
    type: 'integer',
    min: 32,
    max: 1_048_576,
    default: 512,
    unit: 'MiB',
    effect: 'Largest JavaScript heap of a lane; a lane that needs more is replaced.',
  },
  LANE_ENV: {
    type: 'names',
    default: [],
    unit: 'comma-separated names, `AWS_*` for all that begin so',
    effect:
      'Variables that libraries in lanes read from `process.env`, beside those of Node and the system. A plugin reads its own with `config.get`.',
  },
  UV_THREADPOOL_SIZE: {
    type: 'integer',
    min: 1,
    max: 1024,
    default: undefined,
    unit: 'threads',
    effect: 'Threads for files and DNS, fixed before the start; unset, `npm start` takes 4 × cores, at least 16.',
  },
  POOL_STALL_MS: {
    type: 'integer',
    min: 100,
    max: DAY_MS,
    default: 5000,
    unit: 'ms',
    effect: 'The process is not ready while that pool lets a call wait for longer.',
  },
  SHUTDOWN_TIMEOUT_MS: {
    type: 'integer',
    min: 0,
    max: DAY_MS,
    default: 10_000,
    unit: 'ms',
    effect: 'Timeout of a graceful shutdown; the process then ends anyway.',
  },
  NODE_ENV: {
    type: 'text',
    default: 'development',
    effect: 'Unless it is `production`, answers are checked against the `response` schemas of their routes.',
  },
  NODE_APP_INSTANCE: {
    type: 'integer',
    min: 0,
    max: 1_000_000,
    default: undefined,
    effect: 'Number of this process, set by a supervisor that runs several processes of one service (pm2 does).',
  },
  NOTIFY_SOCKET: {
    type: 'text',
    default: undefined,
    unit: 'path of a socket',
    effect:
      'Set by systemd for a unit of `Type=notify`: the process reports there when it is ready, reloads and stops.',
  },
  WATCHDOG_USEC: {
    type: 'integer',
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    default: undefined,
    unit: 'µs',
    effect: 'Set by systemd for `WatchdogSec`: it ends a process whose main thread has not turned for so long.',
  },
  WATCHDOG_PID: {
    type: 'integer',
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    default: undefined,
    unit: 'process id',
    effect: 'Set by systemd with `WATCHDOG_USEC`: the process that reports; another one does not.',
  },

  // relational database
  SQLITE_PATH: { type: 'file', default: 'data/service.db', effect: 'File of the embedded database.' },
  SQLITE_SYNCHRONOUS: {
    type: 'choice',
    choices: ['full', 'normal'],
    default: 'full',
    effect:
      'What a power cut may take from SQLite: `full`: nothing acknowledged; `normal`: the last writes. Neither harms the file.',
  },
  RDB_HOST: { type: 'text', ...NO_BLANKS, default: 'localhost', effect: 'Host of the database server.' },
  RDB_PORT: { type: 'integer', ...PORT_RANGE, default: 5432, effect: 'Port of the database server.' },
  RDB_USER: { type: 'text', default: 'postgres', effect: 'User on the database server.' },
  RDB_PASSWORD: { type: 'text', default: undefined, secret: true, effect: 'Password of `RDB_USER`; unset: none.' },
  RDB_DATABASE: { type: 'text', default: 'service', effect: 'Name of the database on the server.' },
  RDB_TLS: {
    type: 'choice',
    choices: TLS_MODES,
    default: 'off',
    effect:
      'Encryption of all connections to the database server: `off`: none; `require`: any certificate; `verify`: one for `RDB_HOST` by an authority that is trusted.',
  },
  RDB_CA_FILE: {
    type: 'text',
    default: undefined,
    unit: 'path of a PEM file',
    effect: 'Certificates of the authorities that `RDB_TLS=verify` trusts; unset: those that Node trusts.',
  },
  RDB_ALLOW_CLEARTEXT_PASSWORD: {
    type: 'boolean',
    default: false,
    effect: 'Sends `RDB_PASSWORD` as text to a server that asks for it so, even without TLS.',
  },
  RDB_MAX_POOL: {
    type: 'integer',
    min: 1,
    max: 10_000,
    default: 10,
    unit: 'connections',
    effect: 'Most connections of the process, divided among the lanes.',
  },
  RDB_MIN_POOL: {
    type: 'integer',
    min: 0,
    max: 10_000,
    default: (above) => Math.min(2, Number(above.rdbMaxPool ?? 2)),
    unit: 'connections',
    effect: 'Connections that the process keeps open, divided among the lanes.',
  },
  RDB_STATEMENT_TIMEOUT_MS: {
    type: 'integer',
    min: 100,
    max: DAY_MS,
    default: 30_000,
    unit: 'ms',
    effect:
      'Timeout of a statement, after which it is ended; on SQLite of those that can be endless. Migrations have none.',
  },
  DB_AUTO_MIGRATE: { type: 'boolean', default: true, effect: 'Applies pending migrations at the start.' },
  HEALTH_CHECK_INTERVAL: {
    type: 'number',
    min: 0.05,
    max: 86_400,
    default: 30,
    unit: 's',
    effect: 'Interval of the health checks.',
  },

  // state
  STATE_MAX_BYTES: {
    type: 'integer',
    min: 65_536,
    max: 68_719_476_736,
    default: 268_435_456,
    unit: 'bytes',
    effect:
      'What the in-memory state takes, by estimate; one plugin may take a half, one namespace three quarters (STATE_QUOTA).',
  },

  // key-value store
  KV_HOST: { type: 'text', ...NO_BLANKS, default: 'localhost', effect: 'Host of the key-value store.' },
  KV_PORT: { type: 'integer', ...PORT_RANGE, default: 6379, effect: 'Port of the key-value store.' },
  KV_DB: { type: 'integer', min: 0, max: 1_000_000, default: 0, effect: 'Number of the database in the store.' },
  KV_USER: {
    type: 'text',
    ...NO_BLANKS,
    default: undefined,
    effect: "User (ACL) of the store, whose password is `KV_PASSWORD`; unset: the store's default user.",
  },
  KV_PASSWORD: { type: 'text', default: '', secret: true, effect: 'Password of the store; empty: no authentication.' },
  KV_TLS: {
    type: 'choice',
    choices: TLS_MODES,
    default: 'off',
    effect:
      'Encryption of all connections to the store: `off`: none; `require`: any certificate; `verify`: one for `KV_HOST` by an authority that is trusted.',
  },
  KV_CA_FILE: {
    type: 'text',
    default: undefined,
    unit: 'path of a PEM file',
    effect: 'Certificates of the authorities that `KV_TLS=verify` trusts; unset: those that Node trusts.',
  },
  KV_CONNECT_TIMEOUT: {
    type: 'number',
    min: 0.05,
    max: 3600,
    default: 5,
    unit: 's',
    effect: 'Timeout of a connection attempt to the store.',
  },

  // events and jobs
  EVENT_BUS_DRIVER: {
    type: 'choice',
    choices: ['in_process', 'keyvalue_streams'],
    default: 'in_process',
    effect: 'Transport of events: within this process, or streams of the key-value store that all replicas share.',
  },
  EVENT_BUS_MAX_QUEUE: {
    type: 'integer',
    min: 1,
    max: 10_000_000,
    default: 100_000,
    unit: 'events',
    effect: 'Most events that wait in process; above it, `publish` rejects with EVENT_BUS_FULL.',
  },
  EVENT_BUS_MAX_NAMES: {
    type: 'integer',
    min: 1,
    max: 100_000,
    default: 1000,
    unit: 'event names',
    effect: 'Different events that one plugin publishes; `publish` of a further name rejects with EVENT_NAMES_LIMIT.',
  },
  EVENT_BUS_MAX_SUBSCRIPTIONS: {
    type: 'integer',
    min: 1,
    max: 100_000,
    default: 1000,
    unit: 'subscriptions',
    effect: 'Subscriptions of one plugin in one thread; a further one throws EVENT_SUBSCRIPTIONS_LIMIT.',
  },
  EVENT_BUS_MAX_DEAD_BYTES: {
    type: 'integer',
    min: 1_048_576,
    max: 68_719_476_736,
    default: 67_108_864,
    unit: 'bytes',
    effect:
      'What the dead letters take, in this process or in the store; beyond it the oldest are dropped, and counted.',
  },
  EVENT_BUS_CLAIM_IDLE_MS: {
    type: 'integer',
    min: 50,
    max: DAY_MS,
    default: 60_000,
    unit: 'ms',
    effect: 'Stream driver: another consumer claims a delivery that has been idle for longer.',
  },
  EVENT_BUS_STREAM_MAXLEN: {
    type: 'integer',
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    default: undefined,
    unit: 'entries',
    effect: 'Stream driver: approximate limit per stream; unset: unread entries are never trimmed.',
  },
  SCHEDULER_ENABLED: {
    type: 'boolean',
    default: ({ nodeAppInstance }) => !nodeAppInstance,
    effect: 'Jobs run in this process; set it to true on one replica only.',
  },

  // tokens
  AUTH_SECRET_KEY: {
    type: 'text',
    pattern: /^(?!.*-----BEGIN).{32,}$/s,
    wanted: 'at least 32 characters, but not a PEM key',
    default: undefined,
    secret: true,
    effect:
      'Key that signs tokens; the same on all replicas. Unset on a loopback host, without `AUTH_SECRET_KEYS`: a random key.',
  },
  AUTH_SECRET_KEYS: {
    type: 'text',
    // Up to 16: a token without a key id may be tried with each.
    pattern: new RegExp(`^(?!.*-----BEGIN)\\s*${KEY_ENTRY}(?:\\s*,\\s*${KEY_ENTRY}){0,15}\\s*$`, 's'),
    wanted:
      '1 to 16 of kid:secret with commas between them, each secret of at least 32 characters without blanks and commas',
    default: undefined,
    secret: true,
    effect:
      'Keys with ids, to change them while tokens are about: the first signs, all are accepted, as is `AUTH_SECRET_KEY`.',
  },
  AUTH_ISSUER: { type: 'text', default: undefined, effect: 'The `iss` of own tokens; set, others are refused.' },
  AUTH_AUDIENCE: {
    type: 'text',
    default: undefined,
    effect: 'The `aud` of tokens; set, those for others are refused.',
  },
  AUTH_JWKS_URL: {
    type: 'text',
    pattern: /^(?:https:\/\/|http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])[:/])\S+$/,
    wanted: 'an https URL, or an http one on a loopback host',
    default: undefined,
    unit: 'URL',
    effect:
      'Keys of an identity provider whose tokens are accepted, too; needs `AUTH_JWKS_ISSUER` and `AUTH_AUDIENCE`.',
  },
  AUTH_JWKS_ISSUER: { type: 'text', default: undefined, effect: "The `iss` of that provider's tokens." },
  AUTH_TOKEN_TTL_SEC: {
    type: 'integer',
    min: 1,
    max: 315_360_000,
    default: 3600,
    unit: 's',
    effect: 'Default lifetime of a token.',
  },
  AUTH_HASH_THREADS: {
    type: 'integer',
    min: 1,
    max: 64,
    default: () => Math.min(4, availableParallelism()),
    unit: 'threads',
    effect: 'Threads of the process that hash passwords; each takes a core and 32 MiB while it does.',
  },
  AUTH_HASH_QUEUE: {
    type: 'integer',
    min: 0,
    max: 100_000,
    default: (above) => 8 * Number(above.authHashThreads ?? 1),
    unit: 'passwords',
    effect: 'Passwords that wait for such a thread; one more is refused at once with AUTH_BUSY (503).',
  },

  // observability
  LOG_LEVEL: {
    type: 'choice',
    choices: ['debug', 'info', 'warning', 'error'],
    default: 'info',
    effect: 'Lowest level that is written; sinks and `/system/logs/stream` always get INFO and above.',
  },
  LOG_FORMAT: {
    type: 'choice',
    choices: ['pretty', 'json'],
    default: () => (process.stdout.isTTY ? 'pretty' : 'json'),
    effect: 'Format of the log lines; unset: pretty on a terminal, else json.',
  },
  LOG_BUFFER_BYTES: {
    type: 'integer',
    min: 65_536,
    max: 1_073_741_824,
    default: 16_777_216,
    unit: 'bytes',
    effect:
      'Log lines that wait while nobody reads standard output; beyond it the least important are dropped, and counted.',
  },
  LOG_RECORD_BYTES: {
    type: 'integer',
    min: 1024,
    max: 1_048_576,
    default: 32_768,
    unit: 'bytes',
    effect: 'Largest log record; the texts of a larger one are cut, and its size is its field `cut_bytes`.',
  },
  LOG_PLUGIN_RATE: {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 5000,
    unit: 'records per second',
    effect:
      'Log records of one plugin in one thread; further ones are left out, which is told. A fifth is for WARNING and ERROR.',
  },
  OTEL_ENABLED: { type: 'boolean', default: false, effect: 'Exports spans; false: the SDK is never loaded.' },
  OTEL_SERVICE_NAME: { type: 'text', default: 'service', effect: 'Name of this service in traces.' },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    type: 'text',
    pattern: /^(?:https?:\/\/)?(?:\[[0-9A-Fa-f:.]+\]|[^\s[\]/:@]+)(?::\d{1,5})?(?:\/\S*)?$/,
    wanted: 'a URL such as http://localhost:4317',
    default: undefined,
    unit: 'URL',
    effect: 'OTLP receiver of traces (gRPC); unset: spans go to the console.',
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    type: 'text',
    pattern: /^\s*[^=,\s]+\s*=[^,]*(?:,\s*[^=,\s]+\s*=[^,]*)*,?\s*$/,
    wanted: 'name=value pairs with commas between them',
    default: undefined,
    unit: 'comma-separated name=value pairs',
    secret: true,
    effect: 'Headers sent to the receiver.',
  },
  OTEL_BSP_SCHEDULE_DELAY: {
    type: 'integer',
    min: 1,
    max: DAY_MS,
    default: 5000,
    unit: 'ms',
    effect: 'Time between two exports of spans; a full batch is exported at once.',
  },
  OTEL_BSP_MAX_QUEUE_SIZE: {
    type: 'integer',
    min: 1,
    max: 10_000_000,
    default: 2048,
    unit: 'spans',
    effect: 'Most spans of the process that wait for export; above it, the oldest are dropped.',
  },
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: (above) => Math.min(512, Number(above.otelBspMaxQueueSize ?? 512)),
    unit: 'spans',
    effect: 'Most spans per export; at most the size of the queue.',
  },
  OTEL_BSP_EXPORT_TIMEOUT: {
    type: 'integer',
    min: 1,
    max: DAY_MS,
    default: 30_000,
    unit: 'ms',
    effect: 'Timeout of an export; its spans are then dropped.',
  },
  OTEL_TRACES_SAMPLER: {
    type: 'choice',
    choices: [
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ],
    default: 'parentbased_always_on',
    effect: 'Which traces are recorded; `parentbased`: for a trace from outside, its sender decides.',
  },
  OTEL_TRACES_SAMPLER_ARG: {
    type: 'number',
    min: 0,
    max: 1,
    default: 1,
    unit: 'share of the traces',
    effect: 'Share of the traces that the ratio samplers record.',
  },
  OTEL_RESOURCE_ATTRIBUTES: {
    type: 'text',
    default: undefined,
    unit: 'comma-separated name=value pairs',
    effect: 'Further attributes of this process in traces, for example `deployment.environment.name=staging`.',
  },

  // identity and folders
  REPLICA_ID: {
    type: 'text',
    pattern: /^[A-Za-z0-9._:-]{1,200}$/,
    wanted: '1 to 200 of the characters A-Z a-z 0-9 . _ : -',
    // With port 0 the process id tells the replicas of one host apart.
    default: ({ httpPort, nodeAppInstance }) =>
      `${hostname()}:${httpPort || `pid${process.pid}`}${nodeAppInstance === undefined ? '' : `:${nodeAppInstance}`}`,
    effect: 'Name of this replica, unique and stable.',
  },
  DOMAINS_DIR: {
    type: 'folders',
    default: 'domains',
    unit: "folders separated by the platform's path delimiter",
    effect: 'Folders of domains (plugins, migrations, event contracts), in order.',
  },
  TOOLS_DIR: { type: 'folder', default: TOOLS_FOLDER, effect: 'Folder of the active tools.' },
} as const satisfies Record<string, VariableRow>

export type VariableName = keyof typeof VARIABLES

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Lowercase<Head>}${Capitalize<CamelCase<Tail>>}`
  : Lowercase<Name>

type OrUnset<Row, Value> = Row extends { default: undefined } ? Value | undefined : Value

type ValueOf<Row> = Row extends { type: 'integer' | 'number' }
  ? OrUnset<Row, number>
  : Row extends { type: 'boolean' }
    ? boolean
    : Row extends { choices: readonly (infer Choice)[] }
      ? Choice
      : Row extends { type: 'folders' | 'origins' | 'hosts' | 'names' | 'networks' }
        ? readonly string[]
        : OrUnset<Row, string>

/** The parsed environment, deep-frozen; a plain object that can be posted to another thread. */
export type Settings = {
  readonly [Name in VariableName as CamelCase<Name>]: ValueOf<(typeof VARIABLES)[Name]>
}

/** `HTTP_PORT` → `httpPort`. */
export function settingKey(name: string): string {
  return name.toLowerCase().replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}
