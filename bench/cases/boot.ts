import { setTimeout as sleep } from 'node:timers/promises'
import { alone, type BenchCase, figureTo } from '../bench-case.ts'
import { inTurn } from '../comparison.ts'
import { residentBytes } from '../cpu.ts'
import { median } from '../report.ts'
import { type BenchServer, startHeddle } from '../server.ts'

const BOOTS = 5
const IDLE_MS = 3000
const LANES = 2
const BYTES_PER_MB = 1_000_000

export const boot: BenchCase = {
  name: 'boot',
  title: 'Boot to ready, and resident memory when idle, two lanes, shipped domains',
  async run(context) {
    const bootsMs: number[] = []
    const residentMb: number[] = []
    let started = 0
    const heddle = () => {
      const profileDir = ++started > BOOTS ? context.profileDir('heddle') : undefined
      return startHeddle({ lanes: LANES, domains: ['domains'], profileDir })
    }
    const look = async ({ bootMs, pid }: BenchServer, _side: string, round: number): Promise<void> => {
      // The first boot fills the cache of compiled sources and is not counted.
      if (round === 1) return
      bootsMs.push(bootMs)
      // Memory is measured after the process was idle for this long.
      if (round > BOOTS - 2) {
        await sleep(IDLE_MS)
        residentMb.push(residentBytes(pid) / BYTES_PER_MB)
      }
      const memory = residentMb.length > 0 ? `, ${residentMb.at(-1)!.toFixed(0)} MB` : ''
      context.say(`boot ${round - 1}: ${bootMs.toFixed(0)} ms${memory}`)
    }
    await inTurn(context, context.baselinesOnly ? {} : { heddle }, look, { rounds: BOOTS + 1 })
    return {
      rows: [
        alone({
          label: 'boot: spawn to ready',
          unit: 'ms',
          heddle: median(bootsMs),
          target: figureTo('at most', 600, 'ms'),
        }),
        alone({
          label: 'boot: resident when idle',
          unit: 'MB',
          heddle: median(residentMb),
          // With the pages of files, which processes share: `peers` measures without.
          target: figureTo('at most', 180, 'MB'),
        }),
      ],
      details: { bootsMs, residentMb },
    }
  },
}
