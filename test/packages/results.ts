import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Outcome } from './trial.ts'

const FILE = fileURLToPath(new URL('./results.jsonl', import.meta.url))

/** One package on one Node. */
export interface Result extends Outcome {
  name: string
  version: string
  node: string
}

const keyOf = ({ name, node }: Result): string => `${name} ${node}`

/** What was seen the last time, of each package on each Node; it is in the repository, and the page is made from it. */
export function readResults(): Result[] {
  if (!existsSync(FILE)) return []
  return readFileSync(FILE, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

/** Keeps one in the place of the one before. */
export function keepResult(result: Result): void {
  const results = new Map([...readResults(), result].map((each) => [keyOf(each), each]))
  const lines = [...results.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)).map((each) => JSON.stringify(each))
  writeFileSync(FILE, `${lines.join('\n')}\n`)
}
