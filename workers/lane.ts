import { fileURLToPath } from 'node:url'
import { loadModule } from '../src/core/modules/domains.ts'
import { openTime, showTime } from '../src/core/schedule/moved-time.ts'
import { LaneServer } from '../src/lane/server.ts'
import { LANE_PROTOCOL, type LaneInit, type ToPrimary, type WarmUp } from '../src/transport/messages.ts'

const WARM_UP_FILE = fileURLToPath(new URL('../src/lane/warm-up.ts', import.meta.url))

/** The life of one lane: the only task of its thread, but for loading ahead what the lane will need. */
export default async function lane(task: LaneInit | WarmUp): Promise<void> {
  if (!('protocol' in task)) {
    const { warmUp } = (await loadModule(WARM_UP_FILE)) as typeof import('../src/lane/warm-up.ts')
    return warmUp(task)
  }
  if (task.protocol === LANE_PROTOCOL) {
    if (task.movedTime !== null) {
      openTime(task.movedTime)
      // Before the lane remembers the builtins.
      showTime()
    }
    return new LaneServer(task).run()
  }
  const message = 'The runtime on disk is another version than the one that runs: restart the process'
  task.port.postMessage({ type: 'boot-failed', message, stack: undefined } satisfies ToPrimary)
}
