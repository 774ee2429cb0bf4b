import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { haveEnded, isRunning, processTree, signalAll } from './process-tree.ts'
import { tellWarden } from './warden.ts'

const START_MS = 60_000
const STOP_MS = 30_000

/** A user of this system. */
export interface SystemUser {
  uid: number
  gid: number
}

export interface ServerProgram {
  command: string
  args: readonly string[]
  /** Its working folder; what it prints goes to `server.log` there. */
  directory: string
  /** Who it runs as; default: who the tests run as. */
  user?: SystemUser
  env?: NodeJS.ProcessEnv
  /** Whether it answers. */
  isReady(): Promise<boolean>
}

/** A server that can be stopped, started again and frozen, and that does not outlive this process. */
export class ServerProcess {
  readonly #program: ServerProgram
  #child: ChildProcess | undefined

  constructor(program: ServerProgram) {
    this.#program = program
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Resolves when it answers. @throws with the end of its log when it does not come up */
  async start(): Promise<void> {
    if (this.#child !== undefined) throw new Error(`${this.#program.command} runs already`)
    const { command, args, directory, user, env, isReady } = this.#program
    const logFile = join(directory, 'server.log')
    const log = openSync(logFile, 'a')
    const child = spawn(command, args, {
      cwd: directory,
      stdio: ['ignore', log, log],
      env: { PATH: process.env.PATH, ...env },
      detached: true,
      ...user,
    })
    closeSync(log)
    let failure: Error | undefined
    child.on('error', (error) => {
      failure = error
    })
    if (child.pid !== undefined) tellWarden({ pid: child.pid })
    this.#child = child
    const deadlineMs = Date.now() + START_MS
    while (!(await isReady())) {
      const hasEnded = failure !== undefined || child.exitCode !== null || child.signalCode !== null
      if (hasEnded || Date.now() > deadlineMs) {
        await this.stop('SIGKILL')
        throw new Error(
          `${command} did not come up: ${failure?.message ?? (hasEnded ? `it ended with ${child.exitCode ?? child.signalCode}` : `not within ${START_MS} ms`)}\n${readFileSync(logFile, 'utf8').slice(-2000)}`,
        )
      }
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  /** Resolves when it and all of its children have ended; those of one that does not end in time are killed. May be called twice. */
  async stop(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child?.pid === undefined) return
    const tree = processTree(child.pid)
    const exited = child.exitCode !== null || child.signalCode !== null || once(child, 'exit')
    signalAll(signal === 'SIGKILL' ? tree : [child.pid], signal)
    // What is frozen hears the signal when it goes on.
    signalAll(tree, 'SIGCONT')
    if (!(await haveEnded(tree, STOP_MS))) signalAll(tree, 'SIGKILL')
    await exited
    tellWarden({ forget: child.pid })
  }

  /** Takes the processor away from it and all of its children: its sockets stay open, and nothing answers. */
  freeze(): void {
    const pid = this.#running()
    // Itself first: then there are no new children.
    signalAll([pid], 'SIGSTOP')
    signalAll(processTree(pid), 'SIGSTOP')
  }

  thaw(): void {
    signalAll(processTree(this.#running()), 'SIGCONT')
  }

  #running(): number {
    const pid = this.#child?.pid
    if (pid === undefined || !isRunning(pid)) throw new Error(`${this.#program.command} does not run`)
    return pid
  }
}
