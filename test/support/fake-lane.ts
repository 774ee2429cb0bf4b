import type { TestContext } from 'node:test'
import type { Settings } from '../../src/core/config/schema.ts'
import { Lane, type LaneListener, type LaneRole } from '../../src/primary/dispatch/lane.ts'
import type { LaneRegistrar } from '../../src/primary/supervision/lane-registrar.ts'
import type { LaneSet } from '../../src/primary/supervision/lane-set.ts'
import type { LaneStarter } from '../../src/primary/supervision/lane-starter.ts'
import { LaneReplacement } from '../../src/primary/supervision/replacement.ts'
import type { JobManifest, Manifest, RouteManifest } from '../../src/transport/messages.ts'

const ignored = (): void => {}
/** Hears nothing of what a lane sends. */
export const DEAF: LaneListener = {
  onMessage: ignored,
  onPublish: ignored,
  onStored: ignored,
  onRecord: ignored,
  deliveries: { delivered: ignored, reply: ignored, failed: ignored, unbegun: ignored },
  onCall: ignored,
  onLog: ignored,
  onFault: ignored,
}

interface LaneOptions {
  index?: number
  role?: LaneRole
  generation?: number
  manifest?: Partial<Manifest>
  listener?: Partial<LaneListener>
}

/** The primary's end of a lane that has no thread; gone with the test. */
export function laneOf(t: TestContext, options: LaneOptions = {}): Lane {
  const { index = 0, role = 'regular', generation = 0, manifest, listener } = options
  const lane = new Lane({ index, role, generation, maxInFlight: 16, listener: { ...DEAF, ...listener } })
  lane.manifest = { plugins: {}, faults: {}, files: {}, routes: [], subscriptions: [], jobs: [], ...manifest }
  lane.state = 'ready'
  t.after(() => {
    if (lane.state !== 'dead') lane.dispose()
  })
  return lane
}

export const routeOf = (plugin: string, path: string, more: Partial<RouteManifest> = {}): RouteManifest => ({
  plugin,
  method: 'GET',
  path,
  kind: 'endpoint',
  isBodyStreamed: false,
  timeoutMs: undefined,
  tags: [],
  summary: undefined,
  ...more,
})

export const jobOf = (plugin: string, name: string): JobManifest => ({
  plugin,
  name,
  schedule: { kind: 'every', everyMs: 3_600_000 },
  missed: 'skip',
})

/** What replaces these lanes, and the slots whose threads it has started: none of them boots. */
export function replacementOf(lanes: LaneSet) {
  const started: number[] = []
  const starter = {
    start: (index: number) => {
      started.push(index)
      return { state: 'starting', booted: new Promise(() => {}) }
    },
  }
  const settings = { laneStallMs: 10_000 } as Settings
  const replacement = new LaneReplacement(settings, lanes, starter as unknown as LaneStarter, {} as LaneRegistrar)
  return { replacement, started }
}
