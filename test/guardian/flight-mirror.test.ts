import assert from 'node:assert/strict'
import { linkSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { Piscina } from 'piscina'
import type { Routing } from '../../src/primary/http/routing.ts'
import { FlightMirror, NAMES_FILE } from '../../src/primary/supervision/flight-mirror.ts'
import { laneOf } from '../support/fake-lane.ts'
import { folderOf } from '../support/folder.ts'
import type { Task } from './begin-steps.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('what a lane has begun stays in its file, whenever the primary renews that', { timeout: 60_000 }, async (t) => {
  const mirror = new FlightMirror(await folderOf(t, {}))
  const lane = laneOf(t)
  const memory = lane.threadSide.flight
  const path = mirror.begin(lane, memory)
  const pool = new Piscina<Task, number[]>({
    filename: new URL('./begin-steps.ts', import.meta.url).href,
    maxThreads: 1,
    atomics: 'disabled',
  })
  t.after(() => pool.destroy())
  let lost: number[] | undefined
  const ended = pool.run({ memory, path, steps: 10_000 }).then((result) => {
    lost = result
  })
  while (lost === undefined) {
    for (let looks = 0; looks < 500; looks++) mirror.beginLook()
    await turn()
  }
  await ended
  assert.deepEqual(lost, [])
})

test('a process that dies while it writes the names leaves the names that were there before', async (t) => {
  const folder = await folderOf(t, {})
  const mirror = new FlightMirror(folder)
  const routing = { table: { list: () => [] } } as unknown as Routing
  const names = join(folder, NAMES_FILE)
  const name = async (file: string): Promise<void> => {
    mirror.nameSoon(() => [], routing, { [basename(file)]: file })
    await turn()
    await turn()
  }
  await name('/first')
  const before = readFileSync(names, 'utf8')
  // Another name of the same file: it is never cut off, but replaced as a whole.
  const kept = join(folder, 'kept')
  linkSync(names, kept)
  await name('/second')
  assert.equal(readFileSync(kept, 'utf8'), before)
  assert.deepEqual(JSON.parse(readFileSync(names, 'utf8')).files, { second: '/second' })
})
