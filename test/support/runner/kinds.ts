import { readFileSync } from 'node:fs'
import { importsOf, loads } from './imports.ts'

/**
 * How a test file is run.
 * - `together`: in one process with others, one after the other.
 * - `process`: in a process of its own, while others run.
 * - `alone`: in a process of its own, while nothing else runs.
 */
export type Kind = 'together' | 'process' | 'alone'

/** Why other tests must not run beside a file: most of these measure time or memory. */
export const ALONE: Readonly<Record<string, string>> = {
  'rooms/architecture/clone.test.ts': 'it puts a domain into the checkout, which other tests read',
  'rooms/bench/load.test.ts': 'it measures a server for a fifth of a second',
  'rooms/bench/open-loop.test.ts': 'it holds a rate of requests',
  'rooms/bench/cpu.test.ts': 'it measures processor time',
  'rooms/lanes/load.test.ts': 'it needs sixteen requests to arrive within 150 ms',
}

/** Modules and packages with which a file starts processes or threads. */
const STARTING_PACKAGES = ['node:child_process', 'node:worker_threads', 'piscina', '#heddle/testing', 'playwright-core']
/** Helpers that do. */
const STARTING_FILES = ['support/heddle.ts', 'support/servers/', 'support/browser.ts']
/** What a file does to the process that it runs in, and other files would notice. */
const MARKS: readonly RegExp[] = [
  // Hooks of the whole file would run around the tests of every file.
  /^(?:after|before|afterEach|beforeEach)\(/m,
  /import \{[^}]*\b(?:after|before|afterEach|beforeEach|mock)\b[^}]*\} from 'node:test'/,
  /\bprocess\.(?:on|once|exit|chdir|kill|emit)\(/,
  /\bprocess\.(?:exitCode|argv|execArgv|env(?:\.\w+|\[[^\]]+\])) = /,
  /\b(?:delete|Object\.assign\() ?process\.env\b/,
  /\bglobalThis\.\w+ = /,
]

export function kindOf(file: string): Kind {
  if (Object.keys(ALONE).some((path) => file.endsWith(`test/${path}`))) return 'alone'
  const imports = importsOf(file)
  if (STARTING_PACKAGES.some((name) => imports.packages.has(name))) return 'process'
  if (STARTING_FILES.some((path) => loads(imports, path))) return 'process'
  const texts = [...imports.files].map((path) => readFileSync(path, 'utf8'))
  return texts.some((text) => MARKS.some((mark) => mark.test(text))) ? 'process' : 'together'
}
