// What makes the effects of one thread happen once.
import type { Settings } from '../core/config/schema.ts'
import { ClaimMemory } from '../transport/memory/claim-memory.ts'
import { Inbox } from './effects/handled-events.ts'
import { PluginTransactions, type PluginTransactionsOptions } from './effects/transactions.ts'
import { Idempotency, type RequestEffects } from './endpoint/idempotency.ts'

interface ThreadEffectsOptions extends PluginTransactionsOptions {
  settings: Pick<Settings, 'replicaId' | 'httpHandlerTimeoutMs'>
  /** CLAIM_MEMORY_BYTES, shared by all threads. */
  claims: SharedArrayBuffer
  log: RequestEffects['log']
}

/** What makes effects of one thread happen once: of its events, and of its requests. */
export interface ThreadEffects {
  transactions: PluginTransactions
  inbox: Inbox
  requests: RequestEffects
}

export function threadEffects({ settings, claims, log, ...options }: ThreadEffectsOptions): ThreadEffects {
  const transactions = new PluginTransactions(options)
  const { replicaId, httpHandlerTimeoutMs: timeoutMs } = settings
  const idempotency = new Idempotency(transactions, new ClaimMemory(claims), replicaId)
  return { transactions, inbox: new Inbox(transactions), requests: { transactions, idempotency, timeoutMs, log } }
}
