/** Deliveries that wait for a thread with room. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Consumer, type Delivery, DeliveryQueue } from '../../../src/primary/events/consumer.ts'
import { WaitingQueues } from '../../../src/primary/events/queues.ts'

for (const takesTurns of [false, true])
  test(`a delivery that ends when it is offered lets the next of its key begin, and each is offered once${takesTurns ? ', by turns' : ''}`, () => {
    const queues = new WaitingQueues()
    const queue = new DeliveryQueue({} as Consumer, null)
    if (takesTurns) queue.takeTurns(() => true)
    const delivery = (share: string) => ({ queue, share }) as Delivery
    const [first, second] = [delivery('1["a"]'), delivery('1["b"]')]
    const offered: Delivery[] = []
    const dispatch = (next: Delivery): boolean => {
      offered.push(next)
      if (next === first) {
        if (!queue.takesTurns) queue.takeTurns(() => true)
        queues.push(second)
        queues.offer(queue, dispatch)
      }
      return true
    }
    queues.push(first)
    queues.offer(queue, dispatch)
    assert.deepEqual(
      offered.map((each) => each === first),
      [true, false],
    )
    assert.ok(queues.isEmpty)
  })
