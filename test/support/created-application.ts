import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../rooms/package/packed.ts'

/** The `node` that runs an application, and what installs packages with it. */
export interface Program {
  /** Puts a packed file, or what is installed of one, and what `package.json` asks for into a folder, with its command in `node_modules/.bin`. */
  install(folder: string, packed: string): Promise<void>
  /** Added to what a child inherits. */
  env: Record<string, string>
}

/**
 * An application as its author has it: `heddle create <name>`, with packages of its own, installed.
 * @param within an empty folder
 * @param fill what it gets before it is installed
 * @returns its folder
 */
export async function createApplication(
  within: string,
  [name, ...options]: readonly [name: string, ...options: string[]],
  packed: string,
  program: Program,
  fill: (folder: string) => void,
): Promise<string> {
  const tool = join(within, 'tool')
  mkdirSync(tool, { recursive: true })
  await program.install(tool, packed)
  const created = await run(join(tool, 'node_modules/.bin/heddle'), ['create', name, ...options], within, program.env)
  assert.equal(created.code, 0, created.output)
  const folder = join(within, name)
  fill(folder)
  // Most of what it needs is there already.
  renameSync(join(tool, 'node_modules'), join(folder, 'node_modules'))
  await program.install(folder, packed)
  return folder
}

/** As `npm install <name>@<version>` does; the next `install` fetches them. */
export function dependOn(folder: string, versions: Readonly<Record<string, string>>): void {
  const file = join(folder, 'package.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8'))
  Object.assign(manifest.dependencies, versions)
  writeFileSync(file, JSON.stringify(manifest, null, 2))
}
