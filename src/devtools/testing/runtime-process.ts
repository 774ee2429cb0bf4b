// The process of a booted runtime, as the test has it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { EventRecord } from '../../contracts/event-bus.ts'
import { copyEnvironment } from '../../core/config/load.ts'
import { ThreadClock, timesOfThreads, together, Watcher } from '../../core/schedule/thread-clock.cjs'
import type { LogEntry } from './app.ts'
import type { ChildCalls, FromChild, ToChild } from './child.ts'
import { SeenEvents } from './seen-events.ts'

const ENTRY = fileURLToPath(new URL('./child.ts', import.meta.url))
const { LOADER_ARGUMENTS } = createRequire(import.meta.url)('../../preload/launch.cjs') as {
  LOADER_ARGUMENTS: string[]
}
/** Variables that the process inherits: those it needs, and those by which tests are watched. It inherits nothing else. */
const INHERITED = ['PATH', 'HOME', 'TMPDIR', 'TZ', 'LANG', 'NODE_V8_COVERAGE', 'HTTP_LISTENER'] as const
const LEVELS: Record<number, LogEntry['level']> = { 20: 'DEBUG', 30: 'INFO', 40: 'WARNING', 50: 'ERROR' }

/** How often it is looked at a start, milliseconds. */
const LOOK_MS = 500

type Answer<Name extends keyof ChildCalls> = Awaited<ReturnType<ChildCalls[Name]>>

export type Serving = Extract<FromChild, { type: 'serving' }>

/** The process of one booted runtime: its log, its events, and calls into it. */
export class RuntimeProcess {
  readonly logs: LogEntry[] = []
  /** Its output that is not a log line. */
  readonly otherOutput: string[] = []
  readonly events = new SeenEvents<EventRecord>()
  readonly #child: ChildProcess
  readonly #calls = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>()
  readonly #serving: Promise<Serving>
  #nextCall = 0
  #rest = ''

  /** @param args of `child.ts` */
  constructor(env: Record<string, string>, args: readonly string[] = []) {
    const outer = copyEnvironment()
    const inherited = Object.fromEntries(INHERITED.flatMap((name) => (outer[name] ? [[name, outer[name]]] : [])))
    this.#child = spawn(process.execPath, [...LOADER_ARGUMENTS, ENTRY, ...args], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...inherited, ...env },
    })
    this.#child.stdout!.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk))
    this.#child.stderr!.setEncoding('utf8').on('data', (chunk: string) => this.otherOutput.push(chunk))
    this.#serving = new Promise((resolve, reject) => {
      this.#child.on('message', (message: FromChild) => {
        if (message.type === 'serving') resolve(message)
        else this.#hear(message)
      })
      // On `exit` its last output may not have arrived yet.
      this.#child.on('close', (code, signal) => {
        const how = signal === null ? `it ended with ${code}` : `it was ended by ${signal}`
        reject(new Error(`The runtime did not start, ${how}.`))
        for (const call of this.#calls.values()) call.reject(new Error(`The runtime does not answer: ${how}`))
        this.#calls.clear()
        this.events.end(`the runtime is gone, ${how}`)
      })
    })
    // `serving` reports the rejection.
    this.#serving.catch(() => {})
  }

  #hear(message: Exclude<FromChild, Serving>): void {
    switch (message.type) {
      case 'event':
        return this.events.add(message.record)
      case 'failure':
        return this.events.addFailure(message.failure)
      case 'result':
        return this.#take(message.id)?.resolve(message.result)
      case 'error':
        return this.#take(message.id)?.reject(new Error(message.error))
    }
  }

  /** @throws when the process has ended before it served, or does not serve within `timeoutMs`; time for which its threads wait for a core does not count */
  async serving(timeoutMs: number): Promise<Serving> {
    const clock = new ThreadClock(() => together(timesOfThreads(this.#child.pid).values()))
    const watcher = new Watcher(2 * LOOK_MS)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setInterval(() => {
        watcher.tick()
        clock.pass(watcher.awakeMs)
        if (clock.ms > timeoutMs) reject(new Error(`The runtime did not start within ${timeoutMs} ms.`))
      }, LOOK_MS)
    })
    try {
      return await Promise.race([this.#serving, late])
    } finally {
      clearInterval(timer)
    }
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  call<Name extends keyof ChildCalls>(call: Name, ...args: Parameters<ChildCalls[Name]>): Promise<Answer<Name>> {
    if (this.hasEnded) return Promise.reject(new Error('The runtime does not answer: it has ended'))
    const id = this.#nextCall++
    return new Promise<Answer<Name>>((resolve, reject) => {
      this.#calls.set(id, { resolve: resolve as (result: unknown) => void, reject })
      this.#child.send({ id, call, args } satisfies ToChild, (error) => {
        if (error !== null) this.#take(id)?.reject(error)
      })
    })
  }

  /** @returns the exit code, null when a signal has ended it */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    if (!this.hasEnded) {
      const exited = once(this.#child, 'exit')
      this.#child.kill(signal)
      await exited
    }
    return this.#child.exitCode
  }

  #take(id: number) {
    const call = this.#calls.get(id)
    this.#calls.delete(id)
    return call
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = lines.pop()!
    for (const line of lines) {
      try {
        const { level, msg, identity, time: _time, replica: _replica, ...fields } = JSON.parse(line)
        this.logs.push({ level: LEVELS[level as number] ?? 'INFO', message: msg, identity, fields })
      } catch {
        this.otherOutput.push(`${line}\n`)
      }
    }
  }
}
