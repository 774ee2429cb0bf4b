import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const PRELOADED = fileURLToPath(new URL('./few-descriptors.cjs', import.meta.url))

/** Environment of a process that has so many descriptors (`ulimit -n`), from its start on. */
export const fewDescriptors = (limit: number): Record<string, string> => ({
  NODE_OPTIONS: `--require=${PRELOADED}`,
  TEST_DESCRIPTORS: String(limit),
})

/** Why the tests of such a process are skipped. */
export const noFewDescriptors = spawnSync('prlimit', ['--version']).status !== 0 && 'no prlimit of util-linux here'
