import { NO_BLANKS, PORT_RANGE, TLS_MODES, type VariableRow } from './row.ts'

/** State, and the key-value store. */
export const STORE_VARIABLES = {
  STATE_MAX_BYTES: {
    type: 'integer',
    min: 65_536,
    max: 68_719_476_736,
    default: 268_435_456,
    unit: 'bytes',
    effect:
      'What the in-memory state takes, by estimate; one plugin may take half, one namespace three quarters (STATE_QUOTA).',
  },
  REDIS_URL: {
    type: 'text',
    default: undefined,
    secret: true,
    unit: 'redis://user:password@host:port/number',
    effect:
      'Fills those of `KV_HOST`, `_PORT`, `_USER`, `_PASSWORD`, `_DB` and `_TLS` that are unset; rediss:// is `KV_TLS=verify`.',
  },
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
} as const satisfies Record<string, VariableRow>
