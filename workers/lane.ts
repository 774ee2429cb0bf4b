import { fileURLToPath } from 'node:url'
import { workerData } from 'node:worker_threads'
import { loadModule } from '../src/kernel/load-module.ts'
import { LaneServer } from '../src/lanes/lane-server.ts'
import { LANE_PROTOCOL, type LaneInit, type ToPrimary } from '../src/lanes/messages.ts'

// A thread that was started ahead of its lane does not wait idly.
if (workerData !== undefined && workerData !== null) {
  const file = fileURLToPath(new URL('../src/lanes/warm-up.ts', import.meta.url))
  const loading = loadModule(file) as Promise<typeof import('../src/lanes/warm-up.ts')>
  // What cannot be loaded now cannot be loaded by the lane either, which says so.
  loading.then(({ warmUp }) => warmUp()).catch(() => {})
}

/** The life of one lane: the only task of its thread. */
export default async function lane(init: LaneInit): Promise<void> {
  if (init.protocol === LANE_PROTOCOL) return new LaneServer(init).run()
  const message = 'The runtime on disk is another version than the one that runs: restart the process'
  init.port.postMessage({ type: 'boot-failed', message, stack: undefined } satisfies ToPrimary)
}
