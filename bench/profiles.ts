import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** This source file is in the profile of every lane, whatever the lane did. */
const LANE_MODULES = /\/workers\/lane\.ts$/
/** Node names them CPU.<date>.<time>.<pid>.<thread>.<sequence>.cpuprofile. */
const THREAD_IN_NAME = /^CPU\.\d+\.\d+\.\d+\.(\d+)\.\d+\.cpuprofile$/

/** Collects the CPU profiles of one case, and gives them names that say what they show. */
export class ProfileFolder {
  readonly #results: string
  readonly #raw: string
  readonly #servers = new Set<string>()

  /** @param results folder in which the finished profiles end up */
  constructor(results: string) {
    mkdirSync(results, { recursive: true })
    this.#results = results
    this.#raw = mkdtempSync(join(results, '.profiles-'))
  }

  /** For node's `--cpu-prof-dir`: every thread of the process writes its profile there when the process ends by itself. */
  directoryFor(server: string): string {
    this.#servers.add(server)
    const directory = join(this.#raw, server)
    mkdirSync(directory, { recursive: true })
    return directory
  }

  /** Moves them to `<results>/<prefix>-<server>-<thread>.cpuprofile`. @returns the paths */
  collect(prefix: string): string[] {
    const collected = [...this.#servers].flatMap((server) => this.#collectServer(prefix, server))
    rmSync(this.#raw, { recursive: true, force: true })
    return collected
  }

  #collectServer(prefix: string, server: string): string[] {
    const directory = join(this.#raw, server)
    let lanes = 0
    const byThread = readdirSync(directory)
      .flatMap((file) => {
        const thread = THREAD_IN_NAME.exec(file)?.[1]
        return thread === undefined ? [] : [{ file: join(directory, file), thread: Number(thread) }]
      })
      .sort((a, b) => a.thread - b.thread)
    return byThread.map(({ file, thread }) => {
      const role = thread === 0 ? 'primary' : isLane(file) ? `lane-${lanes++}` : `thread-${thread}`
      const path = join(this.#results, `${prefix}-${server}-${role}.cpuprofile`)
      if (existsSync(path)) rmSync(path)
      renameSync(file, path)
      return path
    })
  }
}

function isLane(profileFile: string): boolean {
  const profile = JSON.parse(readFileSync(profileFile, 'utf8')) as { nodes: { callFrame: { url: string } }[] }
  return profile.nodes.some((node) => LANE_MODULES.test(node.callFrame.url))
}
