import { threadId } from 'node:worker_threads'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { ClaimMemory } from '../../transport/memory/claim-memory.ts'
import type { Reply } from '../endpoint/reply.ts'
import type { LogDatabase } from '../event-log/log-database.ts'
import { Claim } from './claim.ts'
import type { RequestIdentity } from './idempotency-key.ts'
import type { PluginTransactions } from './plugin-transactions.ts'

/** How much longer than its route's limit a request may take before another takes its key over, milliseconds. */
export const CLAIM_MARGIN_MS = 5000
/** Attempts at a key that others claim and give up at the same time. */
const ATTEMPTS = 8

/** A row of `heddle_idempotency`. */
interface Row {
  print: string
  claim: string
  state: 'running' | 'done'
  status: number | null
  headers: string | null
  body: Uint8Array | null
}

/** For how long a key is held, milliseconds. */
export interface KeyLimits {
  /** The route's time for a request. */
  timeoutMs: number
  /** How long an answer is kept. */
  ttlMs: number
}

export interface IdempotencyOptions {
  transactions: PluginTransactions
  memory: ClaimMemory
  /** REPLICA_ID. */
  replicaId: string
}

/**
 * Answers of requests that came with an `Idempotency-Key`. A row is claimed before the handler runs, and has the answer from the commit of the
 * handler's effects on.
 *
 * A claim names its process and thread. It is taken over when these are gone, and, where nobody here can know that (a process of another
 * replica), when its time is up. Whoever held it before finds that out in its own transaction, which is then rolled back.
 */
export class Idempotency {
  readonly #transactions: PluginTransactions
  readonly #memory: ClaimMemory
  readonly #replicaId: string
  #claims = 0

  constructor({ transactions, memory, replicaId }: IdempotencyOptions) {
    this.#transactions = transactions
    this.#memory = memory
    this.#replicaId = replicaId
  }

  /**
   * @param plugin whose handler is to answer
   * @returns a claim: the handler is to answer; or the answer that is stored
   * @throws HTTP_IDEMPOTENCY_RUNNING, HTTP_IDEMPOTENCY_REUSED, and whatever the database rejects with
   */
  async begin(plugin: string, identity: RequestIdentity, { timeoutMs, ttlMs }: KeyLimits): Promise<Claim | Reply> {
    const { scope, key, print } = identity
    const database = await this.#transactions.database()
    const claim = `${this.#memory.process} ${threadId} ${++this.#claims} ${this.#replicaId}`
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const nowMs = Date.now()
      const expiresMs = nowMs + timeoutMs + CLAIM_MARGIN_MS
      const { rowCount } = await database.execute(CLAIM, [scope, key, print, claim, expiresMs, nowMs])
      if (rowCount === 1) return new Claim({ transactions: this.#transactions, plugin, scope, key, claim, ttlMs })
      const row = await database.queryOne<Row>(READ, [scope, key])
      // Given up meanwhile.
      if (row === null) continue
      if (row.state === 'running' && this.#isDead(row.claim, database.dialect)) {
        await database.execute(GIVE_UP, [scope, key, row.claim])
        continue
      }
      if (row.print !== print) throw new HeddleError('HTTP_IDEMPOTENCY_REUSED')
      if (row.state === 'done') return replayOf(row)
      break
    }
    throw new HeddleError('HTTP_IDEMPOTENCY_RUNNING')
  }

  #isDead(claim: string, dialect: LogDatabase['dialect']): boolean {
    const [process, thread, , replicaId] = /^(\S+) (\S+) (\S+) (.*)$/s.exec(claim)?.slice(1) ?? []
    if (process === this.#memory.process) return this.#memory.isGone(Number(thread))
    // One process has the file at a time, and one has the replica's id.
    return dialect === 'sqlite' || replicaId === this.#replicaId
  }
}

function replayOf({ status, headers, body }: Row): Reply {
  return { status: Number(status), head: `${headers ?? ''}idempotency-replayed: true\r\n`, body }
}

const CLAIM = `INSERT INTO heddle_idempotency (scope, key, print, claim, state, expires_ms) VALUES ($1, $2, $3, $4, 'running', $5)
  ON CONFLICT (scope, key) DO UPDATE SET print = $3, claim = $4, state = 'running', status = NULL, headers = NULL, body = NULL, expires_ms = $5
  WHERE heddle_idempotency.expires_ms <= $6`
const READ = 'SELECT print, claim, state, status, headers, body FROM heddle_idempotency WHERE scope = $1 AND key = $2'
const GIVE_UP = "DELETE FROM heddle_idempotency WHERE scope = $1 AND key = $2 AND claim = $3 AND state = 'running'"
