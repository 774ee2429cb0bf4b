import { LaneServer } from '../src/lanes/lane-server.ts'
import type { LaneInit } from '../src/lanes/messages.ts'

/** The life of one lane: the only task of its thread. */
export default function lane(init: LaneInit): Promise<void> {
  return new LaneServer(init).run()
}
