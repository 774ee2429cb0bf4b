// npm run test:matrix: each place of a plugin × each fault, beside innocent routes; by hand. All of it takes hours: words of place or fault choose.
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Cell, type Circumstances, runCell } from './cell.ts'
import { FAULTS, type Fault } from './faults.ts'
import { PLACES, type Place } from './places.ts'
import { tableOf } from './table.ts'
import { faultsOf, lineOf } from './verdict.ts'

const USAGE = `npm run test:matrix -- [--place word] [--fault word] [--lanes 1,2] [--mode production,development] [--native yes,no] [--share N] [--at-a-time N] [--json file]
  --place, --fault   those whose name has the word (default: all)
  --share N          every N-th cell (default 1: all)
  --at-a-time N      cells at a time (default 1)
  --json file        one cell a line
  --table file       runs nothing: prints the table of such a file`

interface Task {
  place: Place
  fault: Fault
  circumstances: Circumstances
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      place: { type: 'string', default: '' },
      fault: { type: 'string', default: '' },
      lanes: { type: 'string', default: '1,2' },
      mode: { type: 'string', default: 'production,development' },
      native: { type: 'string', default: 'yes,no' },
      share: { type: 'string', default: '1' },
      'at-a-time': { type: 'string', default: '1' },
      json: { type: 'string' },
      table: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help) return console.log(USAGE)
  if (values.table !== undefined) {
    const lines = readFileSync(values.table, 'utf8').split('\n').filter(Boolean)
    return console.log(tableOf(lines.map((line) => JSON.parse(line) as Cell)))
  }
  const tasks: Task[] = []
  for (const place of PLACES.filter(({ name }) => name.includes(values.place))) {
    for (const fault of FAULTS.filter(({ name }) => name.includes(values.fault))) {
      if (place.isSync && fault.isAsync) continue
      for (const lanes of values.lanes.split(',').map(Number)) {
        for (const mode of values.mode.split(',') as Circumstances['mode'][]) {
          for (const native of values.native.split(',')) {
            tasks.push({ place, fault, circumstances: { lanes, mode, isNative: native === 'yes' } })
          }
        }
      }
    }
  }
  const chosen = tasks.filter((_, n) => n % Number(values.share) === 0)
  console.log(`${chosen.length} cells`)
  if (values.json !== undefined) writeFileSync(values.json, '')
  const cells: Cell[] = []
  const next = chosen.values()
  const work = async () => {
    for (const { place, fault, circumstances } of next) {
      const cell = await runCell(place, fault, circumstances)
      cells.push(cell)
      console.log(lineOf(cell))
      if (values.json !== undefined) appendFileSync(values.json, `${JSON.stringify(cell)}\n`)
    }
  }
  await Promise.all(Array.from({ length: Number(values['at-a-time']) }, work))
  const bad = cells.filter((cell) => faultsOf(cell).length > 0)
  console.log(`${cells.length - bad.length} passed, ${bad.length} failed`)
  process.exitCode = bad.length > 0 ? 1 : 0
}

void main()
