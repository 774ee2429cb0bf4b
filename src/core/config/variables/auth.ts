import { availableParallelism } from 'node:os'
import type { VariableRow } from './row.ts'

/** An entry of AUTH_SECRET_KEYS. */
const KEY_ENTRY = '[A-Za-z0-9._-]{1,64}:[^\\s,]{32,}'

/** Tokens and passwords. */
export const AUTH_VARIABLES = {
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
    default: 1000,
    unit: 'passwords',
    effect:
      'Passwords that wait for such a thread at most, 5 s each; who would wait longer is refused at once with AUTH_BUSY (503).',
  },
} as const satisfies Record<string, VariableRow>
