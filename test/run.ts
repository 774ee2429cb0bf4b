import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serversNeededBy } from './support/servers/needed.ts'
import { PROVIDED_VARIABLE, provideProgram } from './support/servers/provide.ts'

/**
 * `npm test`: every `*.test.ts` under test/, two files at a time; `npm test -- http events` only those whose path contains a word.
 * Node 20's own runner knows no globs.
 */
const here = fileURLToPath(new URL('.', import.meta.url))
const words = process.argv.slice(2)
const files = readdirSync(here, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts') && !name.includes('node_modules'))
  .filter((name) => words.length === 0 || words.some((word) => name.includes(word)))
  .map((name) => relative(process.cwd(), join(here, name)))
  .sort()
if (files.length === 0) {
  console.error(`No test file matches ${words.join(', ')}`)
  process.exit(1)
}

// Once, and before any test's time counts. What is not to be had is said by the tests that are skipped for it.
for (const server of serversNeededBy(files)) {
  await provideProgram(server).catch((error: Error) => console.error(`${server}: ${error.message}`))
}

const runner = spawn(
  process.execPath,
  ['--import', 'tsx', '--test', '--test-reporter=spec', '--test-concurrency=2', ...files],
  { stdio: 'inherit', env: { ...process.env, [PROVIDED_VARIABLE]: 'true' } },
)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal))
runner.on('exit', (code) => process.exit(code ?? 1))
