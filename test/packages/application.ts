import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { NodeProgram } from '../nodes/node-program.ts'
import { packOne, run } from '../rooms/package/packed.ts'
import { createApplication, dependOn, type Program } from '../support/created-application.ts'
import type { Entry } from './entries.ts'

const VERSIONS = fileURLToPath(new URL('./versions.json', import.meta.url))
/** No install script runs: what needs one says so in the table. */
const NO_SCRIPTS = '--ignore-scripts'

/** The versions that were seen, by package. */
export const readVersions = (): Record<string, string> => JSON.parse(readFileSync(VERSIONS, 'utf8'))

/**
 * An application with this heddle, as it is packed, and the packages.
 * @param work a folder; what is there already from the last time stays
 * @param isNewest the newest versions instead of those that were seen: they are written down then
 * @returns its folder
 */
export async function installApplication(
  work: string,
  node: NodeProgram,
  entries: readonly Entry[],
  isNewest: boolean,
): Promise<string> {
  const packed = await packOne()
  try {
    const program: Program = { env: node.env, install: (folder, file) => node.install(folder, file, NO_SCRIPTS) }
    const known = readVersions()
    const wanted = entries.flatMap(({ name, version, beside = [] }) =>
      [version === undefined ? name : `${name}@${version}`, ...beside].filter((each) => !isOfNode(each)).map(parted),
    )
    const versions = Object.fromEntries(
      wanted.map(([name, version]) => [name, isNewest ? version : (known[name] ?? version)]),
    )
    let folder = join(work, 'app')
    if (existsSync(join(folder, 'node_modules'))) {
      dependOn(folder, versions)
      await program.install(folder, packed.first)
    } else {
      mkdirSync(work, { recursive: true })
      folder = await createApplication(work, ['app'], packed.first, program, (made) => dependOn(made, versions))
    }
    for (const name of Object.keys(versions)) known[name] = versionOf(folder, name)
    writeFileSync(VERSIONS, `${JSON.stringify(Object.fromEntries(Object.entries(known).sort()), null, 2)}\n`)
    for (const { prepare } of entries) if (prepare !== undefined) await prepareIn(folder, node, prepare)
    return folder
  } finally {
    packed.end()
  }
}

async function prepareIn(folder: string, node: NodeProgram, { file, text, command, env }: Required<Entry>['prepare']) {
  mkdirSync(join(folder, file, '..'), { recursive: true })
  writeFileSync(join(folder, file), text)
  const { code, output } = await run('npx', command, folder, { ...node.env, ...env })
  if (code !== 0) throw new Error(output)
}

/** `@scope/name@1.9` → `['@scope/name', '1.9']` */
function parted(text: string): [name: string, version: string] {
  const [, name, version = 'latest'] = /^(.[^@]*)(?:@(.+))?$/.exec(text)!
  return [name!, version]
}

const isOfNode = (name: string): boolean => name.startsWith('node:')

/** Of what is installed; empty for what comes with Node. */
export const versionOf = (folder: string, name: string): string =>
  isOfNode(name) ? '' : JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')).version
