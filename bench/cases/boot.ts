import { setTimeout as sleep } from 'node:timers/promises'
import { alone, type BenchCase, figureTo } from '../bench-case.ts'
import { residentBytes } from '../cpu.ts'
import { median } from '../report.ts'
import { startHeddle } from '../server.ts'

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
    // The first boot fills the cache of compiled sources and is not counted.
    for (let attempt = context.baselinesOnly ? BOOTS + 1 : 0; attempt <= BOOTS; attempt++) {
      context.step(`boot ${attempt} of ${BOOTS}`, attempt / (BOOTS + 1))
      const server = await startHeddle({
        lanes: LANES,
        domains: ['domains'],
        profileDir: attempt === BOOTS ? context.profileDir('heddle') : undefined,
      })
      try {
        if (attempt === 0) continue
        bootsMs.push(server.bootMs)
        // Memory is measured after the process was idle for this long.
        if (attempt > BOOTS - 3) {
          await sleep(IDLE_MS)
          residentMb.push(residentBytes(server.pid) / BYTES_PER_MB)
        }
        context.say(
          `boot ${attempt}: ${server.bootMs.toFixed(0)} ms${residentMb.length > 0 ? `, ${residentMb.at(-1)!.toFixed(0)} MB` : ''}`,
        )
      } finally {
        await server.stop()
      }
    }
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
