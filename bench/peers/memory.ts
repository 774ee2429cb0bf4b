import { setTimeout as sleep } from 'node:timers/promises'
import { alone, type CaseContext, figureTo, type Row } from '../bench-case.ts'
import type { Load } from '../comparison.ts'
import { treeMemoryBytes } from '../cpu.ts'
import { median } from '../report.ts'
import { heddleSide } from '../server.ts'

/** The last two show what a further lane takes. */
const IDLE_LANES = [1, 2, 4] as const
const LOADED_LANES = 2
const ROUNDS = 3
/** Memory is measured after the process was idle for this long. */
const IDLE_MS = 3000
const FULL_LOAD_MS = 60_000
const WARMUP_MS = 2000
const MIB = 1 << 20

/** Memory of the runtime's processes, bytes. */
export interface MemorySeen {
  /** When idle: by the number of lanes, one figure for each round. */
  idleBytes: Record<number, number[]>
  /** With two lanes, after a minute at full load. */
  loadedBytes: number[]
}

/** Starts the runtime with one lane, two and four, and puts full load on two. */
export async function watchMemory(context: CaseContext, load: Load): Promise<MemorySeen> {
  const seen: MemorySeen = { idleBytes: {}, loadedBytes: [] }
  for (let round = 1; round <= ROUNDS; round++) {
    for (const lanes of IDLE_LANES) {
      for (const start of Object.values(heddleSide(context, `memory-${lanes}`, lanes))) {
        const server = await start()
        try {
          context.step(`memory, round ${round} of ${ROUNDS}, ${lanes} lanes`)
          await sleep(IDLE_MS)
          const idleBytes = treeMemoryBytes(server.pid)
          seen.idleBytes[lanes] = [...(seen.idleBytes[lanes] ?? []), idleBytes]
          context.say(`${lanes} lanes idle: ${Math.round(idleBytes / MIB)} MB`)
          if (lanes !== LOADED_LANES || round < ROUNDS) continue
          const { target, pid } = server
          await context.load.run({ ...load, ...target, warmupMs: WARMUP_MS, measureMs: FULL_LOAD_MS })
          seen.loadedBytes.push(treeMemoryBytes(pid))
          context.say(`${lanes} lanes after a minute at full load: ${Math.round(seen.loadedBytes[0]! / MIB)} MB`)
        } finally {
          await server.stop()
        }
      }
    }
  }
  return seen
}

export function memoryRows({ idleBytes, loadedBytes }: MemorySeen): Row[] {
  const row = (label: string, bytes: number | null, atMostMb: number): Row =>
    alone({
      label: `peers: memory ${label}`,
      unit: 'MB',
      heddle: bytes === null ? null : bytes / MIB,
      target: figureTo('at most', atMostMb, 'MB'),
    })
  const idle = (lanes: number): number | null => median(idleBytes[lanes] ?? [])
  const [one, two, four] = IDLE_LANES.map(idle)
  const further = two == null || four == null ? null : (four - two) / 2
  return [
    row('when idle, one lane', one ?? null, 110),
    row('when idle, two lanes', two ?? null, 140),
    row('of each further lane', further, 25),
    row('after a minute at full load, two lanes', median(loadedBytes), 200),
  ]
}
