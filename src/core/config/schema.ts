// Every environment variable of the runtime, and the type of the settings that they give. What each of them changes is in README.md beside this file.
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
import { commitIn } from './release.ts'

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
  HTTP_HOST: text({ ...NO_BLANKS, default: '127.0.0.1' }),
  HTTP_PORT: whole({ min: 0, max: 65_535, default: 8000 }),
  HTTP_LISTENER: choice(['auto', 'uws', 'node'], 'auto'),
  HTTP_REUSE_PORT: flag(false),
  HTTP_ALLOWED_HOSTS: list(HOST),
  HTTP_CORS_ORIGINS: list(ORIGIN),
  HTTP_CORS_CREDENTIALS: flag(false),
  HTTP_COMPRESSION: flag(false),
  HTTP_TRUSTED_PROXIES: list(NETWORK),
  SYSTEM_TOKEN: text({ ...TOKEN, secret: true }),
  SYSTEM_READ_TOKEN: text({ ...TOKEN, secret: true }),
  SYSTEM_PORT: whole({ min: 0, max: 65_535 }),
  SYSTEM_HOST: text({ ...NO_BLANKS, default: '127.0.0.1' }),
  HTTP_BODY_LIMIT: whole({ min: 1, max: 1_073_741_824, default: 1_048_576, unit: 'bytes' }),
  HTTP_MAX_KEYS: whole({ min: 1, max: 1_000_000, default: 20_000, unit: 'keys' }),
  HTTP_MAX_STREAMS: whole({ min: 1, max: 60_000, default: 10_000, unit: 'streams' }),
  HTTP_MAX_STREAMS_PER_ROUTE: whole({ min: 1, max: 60_000, default: 5000, unit: 'streams' }),
  HTTP_MAX_STREAMS_PER_ADDRESS: whole({ min: 1, max: 60_000, default: 100, unit: 'streams' }),
  HTTP_MAX_UPLOADS: whole({ min: 1, max: 60_000, default: 10_000, unit: 'uploads' }),
  HTTP_MAX_UPLOADS_PER_ROUTE: whole({ min: 1, max: 60_000, default: 5000, unit: 'uploads' }),
  HTTP_MAX_UPLOADS_PER_ADDRESS: whole({ min: 1, max: 60_000, default: 100, unit: 'uploads' }),
  HTTP_MAX_REQUESTS_PER_ROUTE: whole({ min: 1, max: 65_535, unit: 'requests' }),
  HTTP_MAX_REQUESTS_PER_ADDRESS: whole({ min: 1, max: 65_535, unit: 'requests' }),
  HTTP_KEEP_ALIVE_MS: whole({ min: 100, max: DAY_MS, unit: 'ms' }),
  HTTP_HANDLER_TIMEOUT_MS: whole({ min: 1, max: DAY_MS, default: 30_000, unit: 'ms' }),
}

function lanesByDefault({ processes }: Above, isDevelopment: boolean): number {
  // Each process has a primary thread beside its lanes.
  const free = Math.floor(availableParallelism() / Number(processes ?? 1)) - 1
  return Math.max(1, Math.min(free, isDevelopment ? DEVELOPED_LANES : 256))
}

/** Threads, and the life of the process. */
const PROCESS = {
  PROCESSES: whole({ min: 1, max: 99, default: 1, unit: 'processes' }),
  LANES: whole({ min: 1, max: 256, default: lanesByDefault, unit: 'threads' }),
  LANE_MAX_INFLIGHT: whole({ min: 1, max: 65_535, default: 1024, unit: 'requests' }),
  LANE_STALL_MS: whole({ min: 50, max: DAY_MS, default: 10_000, unit: 'ms' }),
  LANE_MEMORY_MB: whole({ min: 32, max: 1_048_576, default: 512, unit: 'MiB' }),
  LANE_ENV: list(NAME),
  LANE_FREEZE_BUILTINS: flag(false),
  UV_THREADPOOL_SIZE: whole({ min: 1, max: 1024, unit: 'threads' }),
  POOL_STALL_MS: whole({ min: 100, max: DAY_MS, default: 5000, unit: 'ms' }),
  BOOT_STRICT: flag(false),
  SHUTDOWN_DELAY_MS: whole({ min: 0, max: DAY_MS, default: 0, unit: 'ms' }),
  SHUTDOWN_TIMEOUT_MS: whole({ min: 0, max: DAY_MS, default: 10_000, unit: 'ms' }),
  GUARDIAN: flag(true),
  PRIMARY_STALL_MS: whole({ min: 1000, max: DAY_MS, default: 10_000, unit: 'ms' }),
  CRASH_REPORTS_DIR: folder('data/crashes'),
  NODE_ENV: text({ default: 'development' }),
  NODE_APP_INSTANCE: whole({ min: 0, max: 1_000_000 }),
  NOTIFY_SOCKET: text({ wanted: 'the path of a socket' }),
  WATCHDOG_USEC: whole({ min: 1, max: Number.MAX_SAFE_INTEGER, unit: 'µs' }),
  WATCHDOG_PID: whole({ min: 1, max: Number.MAX_SAFE_INTEGER, unit: 'process id' }),
}

/** The database of `db`. */
const DATABASE = {
  SQLITE_PATH: file('data/service.db'),
  SQLITE_SYNCHRONOUS: choice(['full', 'normal'], 'full'),
  DATABASE_URL: text({ wanted: 'postgres://user:password@host:port/database', secret: true }),
  RDB_HOST: text({ ...NO_BLANKS, default: 'localhost' }),
  RDB_PORT: whole({ ...PORT_RANGE, default: 5432 }),
  RDB_USER: text({ default: 'postgres' }),
  RDB_PASSWORD: text({ secret: true }),
  RDB_DATABASE: text({ default: 'service' }),
  RDB_SCHEMA: text({
    pattern: /^(?!pg_)[A-Za-z_][\w-]{0,62}$/,
    wanted: 'the name of a schema: letters, digits, _ and -, not pg_…',
    default: 'public',
  }),
  RDB_TLS: choice(TLS_MODES, 'off'),
  RDB_CA_FILE: text({ wanted: 'the path of a PEM file' }),
  RDB_ALLOW_CLEARTEXT_PASSWORD: flag(false),
  RDB_POOLER: choice(['none', 'transaction'], 'none'),
  RDB_MAX_POOL: whole({ min: 1, max: 10_000, default: 10, unit: 'connections' }),
  RDB_MIN_POOL: whole({
    min: 0,
    max: 10_000,
    default: (above) => Math.min(2, Number(above.rdbMaxPool ?? 2)),
    unit: 'connections',
  }),
  RDB_STATEMENT_TIMEOUT_MS: whole({ min: 100, max: DAY_MS, default: 30_000, unit: 'ms' }),
  DB_AUTO_MIGRATE: flag(true),
  HEALTH_CHECK_INTERVAL: fraction({ min: 0.05, max: 86_400, default: 30, unit: 's' }),
}

/** State, and the key-value store. */
const STORE = {
  STATE_MAX_BYTES: whole({ min: 65_536, max: 68_719_476_736, default: 268_435_456, unit: 'bytes' }),
  REDIS_URL: text({ wanted: 'redis://user:password@host:port/number', secret: true }),
  KV_HOST: text({ ...NO_BLANKS, default: 'localhost' }),
  KV_PORT: whole({ ...PORT_RANGE, default: 6379 }),
  KV_DB: whole({ min: 0, max: 1_000_000, default: 0 }),
  KV_USER: text({ ...NO_BLANKS }),
  KV_PASSWORD: text({ default: '', secret: true }),
  KV_TLS: choice(TLS_MODES, 'off'),
  KV_CA_FILE: text({ wanted: 'the path of a PEM file' }),
  KV_CONNECT_TIMEOUT: fraction({ min: 0.05, max: 3600, default: 5, unit: 's' }),
}

/** Events and jobs. */
const EVENTS = {
  EVENT_BUS_DRIVER: choice(['database', 'in_process', 'keyvalue_streams'], 'database'),
  EVENT_BUS_MAX_QUEUE: whole({ min: 1, max: 10_000_000, default: 100_000, unit: 'events' }),
  EVENT_BUS_MAX_STORED: whole({ min: 1, max: 100_000_000, default: 1_000_000, unit: 'events' }),
  EVENT_BUS_INBOX_KEEP_MS: whole({ min: 1000, max: 366 * DAY_MS, default: 7 * DAY_MS, unit: 'ms' }),
  EVENT_BUS_MAX_NAMES: whole({ min: 1, max: 100_000, default: 1000, unit: 'event names' }),
  EVENT_BUS_MAX_SUBSCRIPTIONS: whole({ min: 1, max: 100_000, default: 1000, unit: 'subscriptions' }),
  EVENT_BUS_WAIT_FOR_TOOLS: flag(true),
  EVENT_BUS_MAX_DEAD_BYTES: whole({ min: 1_048_576, max: 68_719_476_736, default: 67_108_864, unit: 'bytes' }),
  EVENT_BUS_CLAIM_IDLE_MS: whole({ min: 50, max: DAY_MS, default: 60_000, unit: 'ms' }),
  EVENT_BUS_STREAM_MAXLEN: whole({ min: 1, max: Number.MAX_SAFE_INTEGER, unit: 'entries' }),
  SCHEDULER_ENABLED: flag(({ nodeAppInstance }) => !nodeAppInstance),
}

/** Tokens and passwords. */
const AUTH = {
  AUTH_SECRET_KEY: text({
    pattern: /^(?!.*-----BEGIN).{32,}$/s,
    wanted: 'at least 32 characters, but not a PEM key',
    secret: true,
  }),
  // Up to 16: a token without a key id may be tried with each.
  AUTH_SECRET_KEYS: text({
    pattern: new RegExp(`^(?!.*-----BEGIN)\\s*${KEY_ENTRY}(?:\\s*,\\s*${KEY_ENTRY}){0,15}\\s*$`, 's'),
    wanted:
      '1 to 16 of kid:secret with commas between them, each secret of at least 32 characters without blanks and commas',
    secret: true,
  }),
  AUTH_ISSUER: text(),
  AUTH_AUDIENCE: text(),
  AUTH_JWKS_URL: text({
    pattern: /^(?:https:\/\/|http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])[:/])\S+$/,
    wanted: 'an https URL, or an http one on a loopback host',
  }),
  AUTH_JWKS_ISSUER: text(),
  AUTH_TOKEN_TTL_SEC: whole({ min: 1, max: 315_360_000, default: 3600, unit: 's' }),
  AUTH_HASH_THREADS: whole({ min: 1, max: 64, default: () => Math.min(4, availableParallelism()), unit: 'threads' }),
  AUTH_HASH_QUEUE: whole({ min: 0, max: 100_000, default: 1000, unit: 'passwords' }),
}

/** Logs, health and traces. */
const OBSERVABILITY = {
  LOG_LEVEL: choice(['debug', 'info', 'warning', 'error'], 'info', { warn: 'warning' }),
  LOG_FORMAT: choice(['pretty', 'json'], (_, isDevelopment) =>
    isDevelopment || process.stdout.isTTY ? 'pretty' : 'json',
  ),
  LOG_BUFFER_BYTES: whole({ min: 65_536, max: 1_073_741_824, default: 16_777_216, unit: 'bytes' }),
  LOG_RECORD_BYTES: whole({ min: 1024, max: 1_048_576, default: 32_768, unit: 'bytes' }),
  LOG_PLUGIN_RATE: whole({ min: 1, max: 1_000_000, default: 5000, unit: 'records per second' }),
  HEDDLE_RELEASE: text({
    pattern: /^[\x21-\x7e](?:[\x20-\x7e]{0,98}[\x21-\x7e])?$/,
    wanted: '1 to 100 visible ASCII characters',
    default: () => commitIn('.'),
  }),
  HISTORY_ENABLED: flag(true),
  HISTORY_PATH: file((above) => join(dirname(String(above.sqlitePath)), 'history.db')),
  HISTORY_SAMPLE: fraction({
    min: 0,
    max: 1,
    default: (above) => (above.nodeEnv === 'production' ? 0.01 : 1),
    unit: 'share of the requests',
  }),
  HISTORY_HOURS: fraction({ min: 0.01, max: 8760, default: 24, unit: 'hours' }),
  HISTORY_MAX_MB: whole({ min: 1, max: 1_048_576, default: 200, unit: 'MiB' }),
  OTEL_ENABLED: flag(false),
  OTEL_SERVICE_NAME: text({ default: 'service' }),
  OTEL_EXPORTER_OTLP_ENDPOINT: text({
    pattern: /^(?:https?:\/\/)?(?:\[[0-9A-Fa-f:.]+\]|[^\s[\]/:@]+)(?::\d{1,5})?(?:\/\S*)?$/,
    wanted: 'a URL such as http://localhost:4317',
  }),
  OTEL_EXPORTER_OTLP_HEADERS: text({
    pattern: /^\s*[^=,\s]+\s*=[^,]*(?:,\s*[^=,\s]+\s*=[^,]*)*,?\s*$/,
    wanted: 'name=value pairs with commas between them',
    secret: true,
  }),
  OTEL_BSP_SCHEDULE_DELAY: whole({ min: 1, max: DAY_MS, default: 5000, unit: 'ms' }),
  OTEL_BSP_MAX_QUEUE_SIZE: whole({ min: 1, max: 10_000_000, default: 2048, unit: 'spans' }),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: whole({
    min: 1,
    max: 1_000_000,
    default: (above) => Math.min(512, Number(above.otelBspMaxQueueSize ?? 512)),
    unit: 'spans',
  }),
  OTEL_BSP_EXPORT_TIMEOUT: whole({ min: 1, max: DAY_MS, default: 30_000, unit: 'ms' }),
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
  ),
  OTEL_TRACES_SAMPLER_ARG: fraction({ min: 0, max: 1, default: 1, unit: 'share of the traces' }),
  OTEL_RESOURCE_ATTRIBUTES: text({ wanted: 'comma-separated name=value pairs' }),
}

/** The name of the process, and its folders. */
const IDENTITY = {
  // With port 0 the process id tells the replicas of one host apart.
  REPLICA_ID: text({
    pattern: /^[A-Za-z0-9._:-]{1,200}$/,
    wanted: '1 to 200 of the characters A-Z a-z 0-9 . _ : -',
    default: ({ httpPort, nodeAppInstance }) =>
      `${hostname()}:${httpPort || `pid${process.pid}`}${nodeAppInstance === undefined ? '' : `:${nodeAppInstance}`}`,
  }),
  DOMAINS_DIR: folders('domains'),
  SYSTEM_DOMAIN: flag(true),
  TOOLS_DIR: folder(TOOLS_FOLDER),
  TOOLS: text({
    pattern: /^[\w-]+(?:=[\w-]+)?(?:,\s*[\w-]+(?:=[\w-]+)?)*$/,
    wanted: 'implementations like postgres,redis-state',
  }),
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
