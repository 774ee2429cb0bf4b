import { DAY_MS, NO_BLANKS, PORT_RANGE, TLS_MODES, type VariableRow } from './row.ts'

/** The database of `db`. */
export const DATABASE_VARIABLES = {
  SQLITE_PATH: { type: 'file', default: 'data/service.db', effect: 'File of the embedded database.' },
  SQLITE_SYNCHRONOUS: {
    type: 'choice',
    choices: ['full', 'normal'],
    default: 'full',
    effect:
      'What a power cut may take from SQLite: `full`: nothing acknowledged; `normal`: the last writes. Neither harms the file.',
  },
  DATABASE_URL: {
    type: 'text',
    default: undefined,
    secret: true,
    unit: 'postgres://user:password@host:port/database',
    effect:
      'Fills those of `RDB_HOST`, `_PORT`, `_USER`, `_PASSWORD`, `_DATABASE`, `_SCHEMA`, `_TLS` and `_CA_FILE` that are unset.',
  },
  RDB_HOST: { type: 'text', ...NO_BLANKS, default: 'localhost', effect: 'Host of the database server.' },
  RDB_PORT: { type: 'integer', ...PORT_RANGE, default: 5432, effect: 'Port of the database server.' },
  RDB_USER: { type: 'text', default: 'postgres', effect: 'User on the database server.' },
  RDB_PASSWORD: { type: 'text', default: undefined, secret: true, effect: 'Password of `RDB_USER`; unset: none.' },
  RDB_DATABASE: { type: 'text', default: 'service', effect: 'Name of the database on the server.' },
  RDB_SCHEMA: {
    type: 'text',
    pattern: /^(?!pg_)[A-Za-z_][\w-]{0,62}$/,
    wanted: 'the name of a schema: letters, digits, _ and -, not pg_…',
    default: 'public',
    effect:
      'Schema of all tables: the `search_path` of each connection, whatever is set for the user. Made where it is missing, with `DB_AUTO_MIGRATE`.',
  },
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
    effect: 'Sends `RDB_PASSWORD` in plain text to a server that asks for it, even without TLS.',
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
} as const satisfies Record<string, VariableRow>
