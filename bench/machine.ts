// The machine: its versions, and how much work takes how long on it.
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, release, totalmem, type } from 'node:os'
import { spin } from './domains/bench/spin.ts'

const PACKAGES = ['fastify', 'uWebSockets.js', 'piscina', 'better-sqlite3', 'zod', 'tsx']
const BYTES_PER_GIB = 1024 ** 3

/** The machine and the versions, without which a figure says nothing. */
export function describeMachine() {
  return {
    system: `${type()} ${release()}`,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGib: Math.round(totalmem() / BYTES_PER_GIB),
    node: process.version,
    packages: Object.fromEntries(PACKAGES.map((name) => [name, installedVersion(name)])),
  }
}

function installedVersion(name: string): string {
  // Read as a file: not every package exports its package.json.
  const manifest = new URL(`../node_modules/${name}/package.json`, import.meta.url)
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
}

const PROBE_ITERATIONS = 200_000
const ATTEMPTS = 50

/** How many iterations of `spin` take so long on this machine, by the fastest of several runs: a busy moment must not shorten the work. */
export function iterationsFor(milliseconds: number): number {
  let fastestMs = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const startMs = performance.now()
    spin(PROBE_ITERATIONS)
    fastestMs = Math.min(fastestMs, performance.now() - startMs)
  }
  return Math.round((PROBE_ITERATIONS / fastestMs) * milliseconds)
}
