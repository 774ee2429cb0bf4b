import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, release, totalmem, type } from 'node:os'

const PACKAGES = ['fastify', 'uWebSockets.js', 'piscina', 'better-sqlite3', 'zod', 'tinybench', 'tsx']
const BYTES_PER_GIB = 1024 ** 3

/** The machine and the versions, without which a figure says nothing. */
export interface Machine {
  system: string
  cpu: string
  cores: number
  memoryGib: number
  node: string
  packages: Record<string, string>
}

export function describeMachine(): Machine {
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
