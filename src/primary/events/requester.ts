import { HeddleError } from '../../core/errors/catalogue.ts'
import type { Clock, Timer } from '../../core/schedule/clock.ts'
import type { Requester } from './consumer.ts'

/** A delivery has ended: one fewer may reply. @param fault why it has not replied; null when it was handled */
export function replySettled(requester: Requester, fault: string | null): void {
  requester.open--
  if (requester.open === 0 && requester.onlyFailures && fault !== null) requester.failed(fault)
}

/**
 * Publishes an event and resolves with the first object that a subscriber returns, as JSON.
 * @param publish takes the event, or throws
 * @param timers holds the timer of the time limit while the request is open, so that closing the hub can clear it
 */
export function awaitReply(
  clock: Clock,
  event: string,
  timeoutMs: number,
  timers: Set<Timer>,
  publish: (requester: Requester) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(timeoutMs, () => {
      timers.delete(timer)
      reject(new HeddleError('EVENT_BUS_REQUEST_TIMEOUT', `Nobody replied to ${event} within ${timeoutMs} ms`))
    })
    timers.add(timer)
    const settle = (): void => {
      clock.cancel(timer)
      timers.delete(timer)
    }
    try {
      publish({
        open: 0,
        onlyFailures: true,
        reply: (json) => {
          settle()
          resolve(json)
        },
        failed: (error) => {
          settle()
          reject(new HeddleError('EVENT_HANDLER_FAILED', error))
        },
      })
    } catch (error) {
      settle()
      reject(error)
    }
  })
}
