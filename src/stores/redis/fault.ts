// Errors of Redis.
import { createRequire } from 'node:module'
import type { Settings } from '../../core/config/schema.ts'
import { type ErrorCode, HeddleError } from '../../core/errors/catalogue.ts'
import { codeOf, messageOf } from '../../core/errors/description.ts'
import { tlsAdvice } from '../tls/client-tls.ts'

interface DataHandler {
  dispatch(handle: () => void): void
  returnFatalError(error: Error): void
}

/**
 * What ioredis cannot make anything of, such as a null that nobody has asked for, it throws where nobody can catch it, which ends the thread. From
 * now on it ends the connection, as every other breach of the protocol does.
 */
export function endConnectionsOnBadReplies(): void {
  const { default: Handler } = createRequire(import.meta.url)('ioredis/built/DataHandler.js') as {
    default: { prototype: DataHandler }
  }
  Handler.prototype.dispatch = function dispatch(this: DataHandler, handle: () => void): void {
    try {
      handle()
    } catch (error) {
      this.returnFatalError(error as Error)
    }
  }
}

/** The variables of the key-value store. */
export type KvSettings = Pick<
  Settings,
  'kvHost' | 'kvPort' | 'kvDb' | 'kvUser' | 'kvPassword' | 'kvTls' | 'kvCaFile' | 'kvConnectTimeout'
>

/** The outcome of a command whose connection was lost. `unknown`: the server may have run it. */
export type Outcome = 'not sent' | 'unknown'

/** What is wrong and what to do about it. It may depend on the settings, and on what the server says. */
type Sentence = string | ((kv: KvSettings, text: string) => string)

/** Faults of a connection that the operating system reports, by `code`: each is KV_UNAVAILABLE. */
const SYSTEM_FAULTS: Record<string, Sentence> = {
  ECONNREFUSED: 'nothing listens there; start it, or correct KV_HOST and KV_PORT (or REDIS_URL)',
  ENOTFOUND: ({ kvHost }) => `the host ${kvHost} is not known; correct KV_HOST`,
  EAI_AGAIN: ({ kvHost }) =>
    `the address of ${kvHost} cannot be looked up at the moment; check the name service, or correct KV_HOST`,
  ETIMEDOUT: ({ kvConnectTimeout, kvTls }) =>
    `no connection within KV_CONNECT_TIMEOUT (${kvConnectTimeout} s); check that it runs and that the network lets this host through${kvTls === 'off' ? '' : `, and that it speaks TLS, which KV_TLS=${kvTls} wants`}`,
  EHOSTUNREACH: 'that host cannot be reached; check the network, or correct KV_HOST',
  ENETUNREACH: 'that network cannot be reached; check the network, or correct KV_HOST',
}

const CLUSTER = 'it is part of a cluster; name a single server in KV_HOST'

/** Errors that a server answers with, by the beginning of their message. */
const ANSWERS: readonly (readonly [beginning: RegExp, code: ErrorCode, sentence: Sentence])[] = [
  [
    /^(?:WRONGPASS|ERR invalid password)/,
    'KV_REFUSED',
    ({ kvUser }) =>
      kvUser === undefined
        ? 'it refuses the password; correct KV_PASSWORD'
        : `it refuses the user ${kvUser} with this password; correct KV_USER or KV_PASSWORD`,
  ],
  [
    /^NOAUTH/,
    'KV_REFUSED',
    ({ kvPassword }) =>
      kvPassword === ''
        ? 'it requires a password; set KV_PASSWORD'
        : 'it does not accept the password; correct KV_PASSWORD',
  ],
  [
    /DB index is out of range|invalid DB index/,
    'KV_REFUSED',
    ({ kvDb }) => `it has no database ${kvDb}; correct KV_DB, or raise its setting "databases"`,
  ],
  [
    /^ERR SELECT is not allowed/,
    'KV_REFUSED',
    ({ kvDb }) => `it is part of a cluster and has no database ${kvDb}; name a single server`,
  ],
  [
    /^NOPERM/,
    'KV_REFUSED',
    (_, text) => `the user of KV_USER and KV_PASSWORD may not do this; widen its rights on the server (${text})`,
  ],
  [/^DENIED/, 'KV_REFUSED', 'it is in protected mode and accepts only its own host; give it a password'],
  [/^(?:MOVED|ASK)\b/, 'KV_UNAVAILABLE', CLUSTER],
  [/^CROSSSLOT\b/, 'KV_REFUSED', CLUSTER],
  [/^READONLY/, 'KV_READONLY', 'it is a read-only replica; name the primary server in KV_HOST and KV_PORT'],
  [/^MISCONF/, 'KV_READONLY', 'it cannot save to its disk and accepts no writes; check its disk and its log'],
  [/^NOREPLICAS/, 'KV_READONLY', 'it has too few replicas to accept writes; start its replicas'],
  [
    /^OOM/,
    'KV_FULL',
    'it has reached its maxmemory and accepts no more data; raise it, or delete keys or give them a ttlMs',
  ],
  [/^WRONGTYPE/, 'KV_WRONG_TYPE', 'another program has stored data under this key; delete it'],
  [/^LOADING/, 'KV_UNAVAILABLE', 'it is loading its data; wait'],
  [
    /^(?:BUSY|TRYAGAIN|MASTERDOWN|CLUSTERDOWN)\b/,
    'KV_UNAVAILABLE',
    (_, text) => `it accepts no commands at the moment (${text})`,
  ],
  [/^ERR max number of clients/, 'KV_UNAVAILABLE', 'it has too many clients; raise its maxclients'],
]

/**
 * The error for a fault between this process and the key-value store. Its message says what is wrong and what to do about it.
 * @param error from ioredis, the socket or the server; a HeddleError is returned unchanged
 * @param what the command or step that failed, for example `XADD`
 * @returns KV_UNAVAILABLE, KV_REFUSED, KV_FULL, KV_READONLY or KV_WRONG_TYPE; the message never contains the password
 */
export function redisFault(error: unknown, what: string, kv: KvSettings): HeddleError {
  if (error instanceof HeddleError) return error
  const text = withoutSecret(messageOf(error), kv)
  const [code, sentence] = diagnose(error, text, kv)
  return new HeddleError(code, `${placeOf(kv)}${what === '' ? '' : `, ${what}`}: ${sentence}`, {
    cause: withoutArguments(error, kv),
  })
}

/** For an error that the server reported within the result of a script. */
export function answerFault(text: string, what: string, kv: KvSettings): HeddleError {
  return redisFault(Object.assign(new Error(text), { name: 'ReplyError' }), what, kv)
}

/** For a fault that no library has thrown. */
export function unavailable(kv: KvSettings, sentence: string, outcome?: Outcome): HeddleError {
  return new HeddleError('KV_UNAVAILABLE', `${placeOf(kv)}: ${sentence}`, {
    details: outcome === undefined ? undefined : { outcome },
  })
}

export function placeOf({ kvHost, kvPort }: KvSettings): string {
  return `The key-value store at ${kvHost.includes(':') ? `[${kvHost}]` : kvHost}:${kvPort}`
}

/** True when the server itself answered with this error: then the connection still works. */
export function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}

function diagnose(error: unknown, text: string, kv: KvSettings): [code: ErrorCode, sentence: string] {
  const code = codeOf(error)
  const said = (sentence: Sentence): string => (typeof sentence === 'string' ? sentence : sentence(kv, text))
  if (code !== undefined && Object.hasOwn(SYSTEM_FAULTS, code)) return ['KV_UNAVAILABLE', said(SYSTEM_FAULTS[code]!)]
  const advice = tlsAdvice(code, 'KV')
  if (advice !== undefined) return ['KV_REFUSED', advice]
  const answer = ANSWERS.find(([beginning]) => beginning.test(text))
  if (answer !== undefined) return [answer[1], said(answer[2])]
  if (isAnswer(error)) return ['KV_REFUSED', `it refuses the command (${text})`]
  if (/Unknown RESP|unexpected|Protocol error|Command queue state|Please report this/i.test(text)) {
    return ['KV_UNAVAILABLE', 'the server there is not a key-value store; correct KV_HOST and KV_PORT']
  }
  return ['KV_UNAVAILABLE', `the connection was lost${code === undefined ? '' : ` (${code})`}`]
}

function withoutSecret(text: string, { kvPassword }: KvSettings): string {
  return kvPassword === '' ? text : text.replaceAll(kvPassword, '(password)')
}

/** A reply error has the arguments of its command, for example the password of the handshake. */
function withoutArguments(error: unknown, kv: KvSettings): unknown {
  if (!(error instanceof Error)) return undefined
  delete (error as { command?: unknown }).command
  const text = withoutSecret(error.message, kv)
  if (text !== error.message) return new Error(text)
  return error
}
