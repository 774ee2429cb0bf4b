import type { MessagePort } from 'node:worker_threads'
import { KIND } from '../../../src/transport/frames/frames.ts'
import { MetricsRing } from '../../../src/transport/memory/metrics-ring.ts'
import { NameTable } from '../../../src/transport/memory/name-table.ts'
import { Inbox } from '../../../src/transport/rings/inbox.ts'
import { isBody } from './body.ts'

export type Task =
  | { do: 'consume'; memory: SharedArrayBuffer; port: MessagePort; bulk: MessagePort; frames: number }
  | { do: 'write-metrics'; memory: SharedArrayBuffer; thread: number; records: number }
  | { do: 'intern'; memory: SharedArrayBuffer; gate: SharedArrayBuffer; names: string[] }

export interface Consumed {
  /** How often each frame was seen, by its number. */
  seen: Uint8Array
  damaged: number
  disordered: number
}

/** The other thread of the stress tests. */
export default async function run(task: Task): Promise<unknown> {
  switch (task.do) {
    case 'consume':
      return consume(task)
    case 'write-metrics':
      return writeMetrics(task)
    case 'intern':
      return intern(task)
  }
}

async function consume({ memory, port, bulk, frames }: Extract<Task, { do: 'consume' }>): Promise<Consumed> {
  const result: Consumed = { seen: new Uint8Array(frames), damaged: 0, disordered: 0 }
  let last = -1
  await new Promise<void>((resolve) => {
    const inbox = new Inbox(
      memory,
      bulk,
      (kind, id, at, length) => {
        if (kind === KIND.SETTLED) return resolve()
        if (id <= last) result.disordered++
        last = id
        result.seen[id]!++
        if (!isBody(inbox.bytes, at, length, id)) result.damaged++
      },
      { beginBatch: () => {}, endBatch: () => {} },
    )
    port.on('message', inbox.drain)
    // What was rung for before this thread listened.
    inbox.drain()
  })
  port.close()
  bulk.close()
  return result
}

/** Each record's fields follow from its thread and number, so that a mixed one is found out. */
function writeMetrics({ memory, thread, records }: Extract<Task, { do: 'write-metrics' }>): void {
  const ring = new MetricsRing(memory)
  for (let n = 0; n < records; n++) ring.write((thread * 100 + n) % 1000, n % 3 === 0, n, thread * 1e9 + n, thread)
}

function intern({ memory, gate, names }: Extract<Task, { do: 'intern' }>): [string, number][] {
  const words = new Int32Array(gate)
  Atomics.add(words, 0, 1)
  Atomics.wait(words, 1, 0)
  const table = new NameTable(memory)
  return names.map((name) => [name, table.intern(name)])
}
