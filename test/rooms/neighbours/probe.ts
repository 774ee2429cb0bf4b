import type { Heddle } from '../../support/heddle.ts'
import { handledBy } from '../event-store/databases.ts'

/** How long an answer, and then a delivery, may take before it counts as none, milliseconds. */
const ANSWER_MS = 6000
const DELIVERY_MS = 4000
/** The same where the process says nothing of a fault: a busy machine is none. */
const SILENT_DELIVERY_MS = 90_000
const LOOK_MS = 50

/** What an innocent caller sees. */
export interface Seen {
  /** Of a publication by itself and of one in a transaction; 0: no answer in time. */
  statuses: number[]
  answeredMs: number
  /** When both were handled; null: not all that was accepted has been. */
  deliveredMs: number | null
  isReady: boolean
  reasons: string[]
}

async function statusOf(heddle: Heddle, path: string, body: object): Promise<number> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  try {
    return (await heddle.fetch(path, { ...init, signal: AbortSignal.timeout(ANSWER_MS) })).status
  } catch {
    return 0
  }
}

/** Publishes two events, and looks what becomes of them. @param id of its own */
export async function probe(heddle: Heddle, id: string): Promise<Seen> {
  const startMs = performance.now()
  const statuses = await Promise.all([
    statusOf(heddle, '/events', { event: 'order.taken', payload: { id: `${id} bare` } }),
    statusOf(heddle, '/orders', { id: `${id} row` }),
  ])
  const answeredMs = Math.round(performance.now() - startMs)
  const wanted = ['bare', 'row']
    .filter((_, n) => statuses[n]! >= 200 && statuses[n]! < 300)
    .map((each) => `${id} ${each}`)
  const isHandled = async (): Promise<boolean> => {
    const handled = new Set((await handledBy(heddle).catch(() => [])).map(({ order_id }) => order_id))
    return wanted.every((each) => handled.has(each))
  }
  const readiness = () =>
    heddle.json('/readiness').catch((error: Error) => ({ status: 0, body: { error: error.message } }))
  const deliveredWithin = async (ms: number): Promise<number | null> => {
    while (performance.now() - startMs < answeredMs + ms) {
      if (await isHandled()) return Math.round(performance.now() - startMs)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
    return null
  }
  let deliveredMs = await deliveredWithin(DELIVERY_MS)
  if (deliveredMs === null && (await readiness()).body.reasons?.length === 0)
    deliveredMs = await deliveredWithin(SILENT_DELIVERY_MS)
  const { status, body } = await readiness()
  // A lane that does not answer says nothing of itself.
  const { ready = false, reasons = [`readiness is ${status}: ${body.error}`] } = body
  return { statuses, answeredMs, deliveredMs, isReady: ready, reasons }
}

export const isWell = ({ statuses, deliveredMs }: Seen): boolean =>
  statuses.every((status) => status >= 200 && status < 300) && deliveredMs !== null

/** One line about a cell. */
export function lineOf(cell: string, seen: Seen): string {
  const { statuses, answeredMs, deliveredMs, isReady, reasons } = seen
  const delivered = deliveredMs === null ? 'not all delivered' : `delivered in ${deliveredMs} ms`
  const ready = `${isReady ? 'ready' : 'not ready'}${reasons.length === 0 ? '' : ` (${reasons.join('; ').slice(0, 120)})`}`
  return `${cell}: answered ${statuses.join(' and ')} in ${answeredMs} ms, ${delivered}; ${ready}`
}
