import { LaneServer } from '../src/lanes/lane-server.ts'
import { LANE_PROTOCOL, type LaneInit, type ToPrimary } from '../src/lanes/messages.ts'

/** The life of one lane: the only task of its thread. */
export default async function lane(init: LaneInit): Promise<void> {
  if (init.protocol === LANE_PROTOCOL) return new LaneServer(init).run()
  const message = 'The runtime on disk is another version than the one that runs: restart the process'
  init.port.postMessage({ type: 'boot-failed', message, stack: undefined } satisfies ToPrimary)
}
