/** Holds that hub and logs ask no clock, timer or chance but those they are given: a simulation gives them its own. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const ROOT = join(import.meta.dirname, '../../..')
const FOLDERS = ['src/primary/events', 'src/primary/event-store', 'src/runtime/event-store', 'src/runtime/event-store']
const FORBIDDEN =
  /\bDate\.now\b|\bnew Date\(\)|\bperformance\b|\bhrtime\b|\bset(?:Timeout|Interval|Immediate)\b|\bMath\.random\b|\brandom(?:UUID|Bytes|Int|Fill|FillSync|Word|Hex)\b|\bSYSTEM_(?:CLOCK|CHANCE)\b|^(?:import .*|\s+)\b(?:steadyMs|exactMs|monotonicMs)(?: \}|,)|^import .*(?:causality\/ids|node:timers)/

test('hub and logs take time and chance from their arguments alone', () => {
  const found: string[] = []
  for (const folder of FOLDERS) {
    for (const name of readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith('.ts')) continue
      const lines = readFileSync(join(ROOT, folder, name), 'utf8').split('\n')
      for (const [n, line] of lines.entries())
        if (FORBIDDEN.test(line.replace(/^\s*(?:\/\/|\*|\/\*).*/, '')))
          found.push(`${folder}/${name}:${n + 1} ${line.trim()}`)
    }
  }
  assert.deepEqual(found, [])
})

test('each way to ask them by oneself is seen', () => {
  const ways = [
    'const at = Date.now()',
    'new Date().toISOString()',
    'performance.now()',
    'await new Promise(setImmediate)',
    'Math.random()',
    'clock: SYSTEM_CLOCK',
    "import { type Clock, steadyMs } from '../../core/schedule/clock.ts'",
    '  exactMs,',
  ]
  assert.deepEqual(
    ways.filter((way) => !FORBIDDEN.test(way)),
    [],
  )
})
