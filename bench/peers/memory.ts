import { setTimeout as sleep } from 'node:timers/promises'
import { alone, type CaseContext, figureTo, type Row } from '../bench-case.ts'
import { inTurn, type Load } from '../comparison.ts'
import { treeMemoryBytes } from '../cpu.ts'
import { median } from '../report.ts'
import { type BenchServer, heddleSide } from '../server.ts'

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
  /** When idle: by the name of the side, one figure for each round. */
  idleBytes: Record<string, number[]>
  /** With two lanes, after a minute at full load. */
  loadedBytes: number[]
}

const sideOf = (lanes: number): string => `memory-${lanes}`

/** Starts the runtime with one lane, two and four, and puts full load on two. */
export async function watchMemory(context: CaseContext, load: Load): Promise<MemorySeen> {
  const loadedBytes: number[] = []
  const sides = Object.assign({}, ...IDLE_LANES.map((lanes) => heddleSide(context, sideOf(lanes), lanes)))
  const look = async ({ target, pid }: BenchServer, side: string, round: number): Promise<number> => {
    await sleep(IDLE_MS)
    const idleBytes = treeMemoryBytes(pid)
    context.say(`${side} idle: ${Math.round(idleBytes / MIB)} MB`)
    if (side === sideOf(LOADED_LANES) && round === ROUNDS) {
      await context.load.run({ ...load, ...target, warmupMs: WARMUP_MS, measureMs: FULL_LOAD_MS })
      loadedBytes.push(treeMemoryBytes(pid))
      context.say(`${side} after a minute at full load: ${Math.round(loadedBytes[0]! / MIB)} MB`)
    }
    return idleBytes
  }
  return { idleBytes: await inTurn(context, sides, look, { rounds: ROUNDS, what: 'memory, ' }), loadedBytes }
}

export function memoryRows({ idleBytes, loadedBytes }: MemorySeen): Row[] {
  const row = (label: string, bytes: number | null, atMostMb: number): Row =>
    alone({
      label: `peers: memory ${label}`,
      unit: 'MB',
      heddle: bytes === null ? null : bytes / MIB,
      target: figureTo('at most', atMostMb, 'MB'),
    })
  const idle = (lanes: number): number | null => median(idleBytes[sideOf(lanes)] ?? [])
  const [one, two, four] = IDLE_LANES.map(idle)
  const further = two == null || four == null ? null : (four - two) / 2
  return [
    row('when idle, one lane', one ?? null, 110),
    row('when idle, two lanes', two ?? null, 140),
    row('of each further lane', further, 25),
    row('after a minute at full load, two lanes', median(loadedBytes), 200),
  ]
}
