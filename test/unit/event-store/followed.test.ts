import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FollowState } from '../../../src/contracts/event-bus.ts'
import type { HeddleError } from '../../../src/core/errors/catalogue.ts'
import type { EventIndex } from '../../../src/primary/event-store/event-index.ts'
import { FollowedEvents } from '../../../src/primary/event-store/followed.ts'
import type { StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import { SimulatedClock } from '../../simulation/time.ts'
import { hubOf } from '../events/fake-thread.ts'

test('FollowedEvents: an event is not called unknown before the store is open', async (t) => {
  const { hub } = hubOf(t)
  const clock = new SimulatedClock()
  let isOpening = true
  const followed = new FollowedEvents({
    hub,
    clock,
    database: () => null,
    isOpening: () => isOpening,
    index: {} as EventIndex,
    cancels: () => null,
  })
  let error: unknown = null
  void followed.followed('evt_1', '').catch((thrown) => {
    error = thrown
  })
  const step = async (): Promise<void> => {
    clock.step()
    await new Promise(setImmediate)
  }
  while (clock.steadyMs() < 10_000) await step()
  assert.equal(error, null)
  isOpening = false
  while (error === null) await step()
  assert.equal((error as unknown as HeddleError).code, 'EVENT_UNKNOWN')
})

test('FollowedEvents: what another process took back is cancelled, although this one has not heard of it', async (t) => {
  const { hub } = hubOf(t)
  const clock = new SimulatedClock()
  let rows = [rowOf('evt_1')]
  let hasLooked = false
  const database = {
    dialect: 'sqlite',
    query: async (sql: string) => (sql.includes('LEFT JOIN heddle_group') ? rows : []),
  } as unknown as StoreDatabase
  const followed = new FollowedEvents({
    hub,
    clock,
    database: () => database,
    isOpening: () => false,
    index: { want: () => {} } as EventIndex,
    cancels: () => ({
      look: async () => {
        hasLooked = true
      },
      isTakenBack: () => hasLooked,
    }),
  })
  const answer = async (seen: string): Promise<FollowState> => {
    let state: FollowState | null = null
    void followed.followed('evt_1', seen).then((found) => {
      state = found
    })
    while (state === null) {
      clock.step()
      await new Promise(setImmediate)
    }
    return state
  }
  const first = await answer('')
  assert.deepEqual(
    first.subscribers.map(({ state }) => state),
    ['waiting'],
  )
  assert.equal(hasLooked, false)
  rows = []
  const last = await answer(first.version)
  assert.deepEqual(
    last.subscribers.map(({ state }) => state),
    ['cancelled'],
  )
})

const rowOf = (id: string) => ({
  event_id: id,
  event: 'a.b',
  envelope: '[null,null,"","a",0,""]',
  key: null,
  uniq: null,
  grp: 1,
  name: 'g0.G',
  seq: 7,
  due_ms: 0,
  retry_ms: 0,
  attempt: 1,
  error: '',
})
