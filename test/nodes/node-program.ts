import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '../rooms/package/packed.ts'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/nodes', import.meta.url))
const NPM = ['--no-audit', '--no-fund', '--prefer-offline']

/** A Node that comes from npm. */
export class NodeProgram {
  /** `22` */
  readonly line: string
  /** The folder of `node`. */
  readonly bin: string
  /** What makes it the `node` of a child, and of npm. */
  readonly env: Record<string, string>

  private constructor(line: string, folder: string) {
    this.line = line
    this.bin = join(folder, 'node_modules/node/bin')
    this.env = { PATH: `${this.bin}${delimiter}${process.env.PATH}` }
  }

  /** The newest of its line. Its folder stays for the next run. */
  static async provide(line: string): Promise<NodeProgram> {
    const folder = join(CACHE, line)
    const program = new NodeProgram(line, folder)
    if (existsSync(join(program.bin, 'node'))) return program
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{ "private": true, "allowScripts": { "node": true } }\n')
    const { code, output } = await run('npm', ['install', '--no-save', `node@${line}`, ...NPM], folder, outerEnv())
    if (code !== 0) throw new Error(output)
    return program
  }

  /** `npm test` runs on it. */
  get isAtHand(): boolean {
    return process.versions.node.startsWith(`${this.line}.`)
  }

  /** As a user does: `npm install heddle-0.1.0.tgz`. @param options of npm */
  readonly install = async (folder: string, packedFile: string, ...options: string[]): Promise<void> => {
    if (!existsSync(join(folder, 'package.json'))) writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
    await this.#npm(folder, 'install', packedFile, ...options)
  }

  async installLocked(folder: string): Promise<void> {
    await this.#npm(folder, 'ci')
  }

  async #npm(folder: string, ...args: string[]): Promise<void> {
    const { code, output } = await run('npm', [...args, ...NPM], folder, { ...outerEnv(), ...this.env })
    if (code !== 0) throw new Error(output)
  }
}

/** All of the environment: a proxy or a certificate of the network is in it. */
const outerEnv = () => ({ ...process.env }) as Record<string, string>
