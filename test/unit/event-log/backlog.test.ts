import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Backlog } from '../../../src/primary/event-log/backlog.ts'
import type { StoredRow } from '../../../src/primary/event-log/log-reader.ts'
import type { EventLog } from '../../../src/runtime/event-log/event-log.ts'

/** A log in which nothing is read before the test lets it. */
function backlogOf(stored: readonly number[]) {
  const reads: { positions: readonly number[]; answer: () => void }[] = []
  const query = (sql: string, params: readonly (number | string)[]) =>
    new Promise((resolve) => {
      const [from, to] = params.map(Number) as [number, number]
      const isRange = sql.includes('seq > $1 AND seq <= $2')
      const wanted = isRange
        ? stored.filter((seq) => seq > from && seq <= to)
        : stored.filter((seq) => params.includes(seq))
      // What waits for a group: the even ones.
      const positions = sql.includes('d.due_ms < 0')
        ? stored.filter((seq) => seq % 2 === 0 && seq <= Number(params[2]))
        : wanted
      reads.push({ positions, answer: () => resolve(positions.map((seq) => ({ seq, is_split: 0 }))) })
    })
  const log = { database: { query }, memory: { epoch: 0 } } as unknown as EventLog
  const state: { isUncertain: boolean; leavers: Set<number> | null } = { isUncertain: false, leavers: null }
  const backlog = new Backlog({
    log,
    shared: () => null,
    written: async () => {},
    awaiting: () => [],
    hasUnwritten: () => false,
    isUncertain: () => state.isUncertain,
    collectLeavers: (leavers) => {
      state.leavers = leavers
    },
  })
  const taken: number[] = []
  const take = (rows: readonly StoredRow[]): void => void taken.push(...rows.map(({ row }) => Number(row.seq)))
  /** @param meanwhile happens after the read was begun */
  const read = async (meanwhile = () => {}): Promise<void> => {
    const before = reads.length
    const done = backlog.read(take)
    while (reads.length === before) await new Promise(setImmediate)
    meanwhile()
    reads.at(-1)!.answer()
    await done
  }
  return { backlog, taken, read, state }
}

test('what goes on while a page is read comes before the page', async () => {
  const { backlog, taken, read } = backlogOf([1, 2, 3, 4, 5])
  for (const seq of [3, 4, 5]) backlog.pass(seq)
  await read(() => backlog.free([2, 1]))
  assert.deepEqual(taken, [], 'the page is put back')
  assert.equal(backlog.isEmpty, false, 'and holds up what is new')
  await read()
  await read()
  assert.deepEqual(taken, [1, 2, 3, 4, 5])
  assert.equal(backlog.isEmpty, true)
})

test('what leaves the hub while it is read is read once more: its row says who was not done then', async () => {
  const { backlog, taken, read, state } = backlogOf([1, 2, 3])
  backlog.free([1, 2])
  await read(() => state.leavers!.add(2))
  assert.deepEqual(taken, [])
  await read(() => state.leavers!.add(3))
  assert.deepEqual(taken, [1, 2], 'another event may leave')
  backlog.groupReturned('order.placed', 'group')
  await read(() => state.leavers!.add(2))
  assert.deepEqual(taken, [1, 2])
  assert.equal(backlog.size + Number(backlog.hasMore), 1, 'the group is still to be read for')
  await read()
  assert.deepEqual(taken, [1, 2, 2])
  assert.equal(state.leavers, null, 'nobody wants to know')
})

test("a group that comes back while an earlier process's events are read gets its own first, and none twice", async () => {
  const { backlog, taken, read } = backlogOf([1, 2, 3, 4])
  backlog.leave(0, 4)
  await read(() => backlog.groupReturned('order.placed', 'group'))
  assert.deepEqual(taken, [])
  await read()
  assert.deepEqual(taken, [], 'nothing before what has been read waits for it')
  await read()
  assert.deepEqual(taken, [1, 2, 3, 4])
  assert.equal(backlog.size, 0)
})

test('what a group has missed comes before what has no room', async () => {
  const { backlog, taken, read } = backlogOf([1, 2, 3, 4, 5])
  backlog.pass(5)
  backlog.groupReturned('order.placed', 'group')
  await read()
  await read()
  assert.deepEqual(taken, [2, 4, 5])
})

test('after the death of a lane what was stored last waits until it is known what the lane has left', async () => {
  const { backlog, taken, read, state } = backlogOf([1, 2])
  state.isUncertain = true
  assert.equal(backlog.isEmpty, false, 'what is new waits')
  backlog.pass(2)
  assert.equal(backlog.hasMore, false)
  backlog.free([1])
  await read()
  assert.deepEqual(taken, [1], 'what the lane has left goes')
  assert.equal(backlog.hasMore, false)
  state.isUncertain = false
  await read()
  assert.deepEqual(taken, [1, 2])
})
