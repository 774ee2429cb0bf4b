// What a lane lets go of when it leaves: threads, files, shared memory.
import { subscribe } from 'node:diagnostics_channel'
import type { EventEmitter } from 'node:events'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { constants, devNull } from 'node:os'
import type { Worker } from 'node:worker_threads'
import type { Origin } from '../contracts/tracing.ts'
import { causality } from '../core/causality/context.ts'
import { uncountLostImmediates, uncountTimers } from '../core/schedule/loop-counts.ts'
import type { Holder, ToPrimary } from '../transport/messages.ts'

/** Handlers that a report names at most. */
const HOLDERS_MAX = 10
/** A boot has to have opened so many to be why none is left: another lane may boot the same just then, and have them. */
const HELD_MIN = 64

type Opened = (error: Error | null, descriptor: number) => void

const { open, openSync, close, closeSync, fstatSync } = fs
const openLater = fs.promises.open

/** Who has opened each file of this thread that is open. What the runtime itself has opened is not among them. */
const openers = new Map<number, Origin>()
let descriptors = Number.POSITIVE_INFINITY

/**
 * From now on it is known which handler has opened a file: the process has a limited number of descriptors, and all plugins share it.
 * @param max what plugins open gets none from this number on: the rest is for the thread that takes over from the one that has them
 */
export function watchOpenFiles(max: number): void {
  descriptors = max
  /** @returns false when it has to be closed again */
  const opened = (descriptor: number): boolean => {
    const origin = causality.getStore()?.origin
    if (origin == null) return true
    if (descriptor >= descriptors) return false
    openers.set(descriptor, origin)
    return true
  }
  const builtin = fs as unknown as Record<string, unknown>
  builtin.openSync = (...args: Parameters<typeof openSync>) => {
    const descriptor = openSync(...args)
    if (opened(descriptor)) return descriptor
    closeSync(descriptor)
    throw tooMany(args[0])
  }
  builtin.open = (...args: unknown[]) => {
    const callback = args.at(-1)
    if (typeof callback === 'function') {
      args[args.length - 1] = (error: Error | null, descriptor: number) => {
        if (error || opened(descriptor)) (callback as Opened)(error, descriptor)
        else close(descriptor, () => (callback as (error: Error) => void)(tooMany(args[0])))
      }
    }
    return (open as (...all: unknown[]) => void)(...args)
  }
  builtin.closeSync = (descriptor: number) => {
    openers.delete(descriptor)
    closeSync(descriptor)
  }
  builtin.close = (descriptor: number, ...callback: [fs.NoParamCallback?]) => {
    openers.delete(descriptor)
    close(descriptor, ...callback)
  }
  fs.promises.open = async (...args) => {
    const handle = await openLater(...args)
    const { fd } = handle
    if (!opened(fd)) {
      await handle.close()
      throw tooMany(args[0])
    }
    // It is one, undeclared.
    ;(handle as unknown as EventEmitter).once('close', () => openers.delete(fd))
    return handle
  }
  syncBuiltinESMExports()
}

/** As the system says it. */
function tooMany(path: unknown): Error {
  const error = new Error(`EMFILE: too many open files, open '${path}'`)
  return Object.assign(error, { errno: -constants.errno.EMFILE, code: 'EMFILE', syscall: 'open', path })
}

/** Whether the process has file descriptors left: without one nothing more can boot, and plugins get none when there are `few`. */
export function descriptorsLeft(): 'many' | 'few' | 'none' {
  try {
    const descriptor = openSync(devNull, 'r')
    closeSync(descriptor)
    return descriptor < descriptors ? 'many' : 'few'
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'EMFILE' || code === 'ENFILE' ? 'none' : 'many'
  }
}

/** The plugin whose boot has taken them in this thread; null when none has. */
export function bootThatHoldsFiles(): Origin | null {
  const counts = new Map<string | undefined, number>()
  for (const origin of openers.values()) {
    const count = (counts.get(origin.bootFile) ?? 0) + 1
    counts.set(origin.bootFile, count)
    if (origin.bootFile !== undefined && count >= HELD_MIN) return origin
  }
  return null
}

/** The handlers whose files are open, those with the most first. */
export function holdersOfFiles(): Holder[] {
  const holders = new Map<string, Holder>()
  for (const [descriptor, { plugin, handler }] of openers) {
    if (!isOpen(descriptor)) {
      openers.delete(descriptor)
      continue
    }
    const key = `${plugin} ${handler}`
    const seen = holders.get(key)
    if (seen === undefined) holders.set(key, { plugin, handler, files: 1 })
    else seen.files++
  }
  return [...holders.values()].sort((a, b) => b.files - a.files).slice(0, HOLDERS_MAX)
}

/** A handle that nobody has closed is closed when it is collected. */
function isOpen(descriptor: number): boolean {
  try {
    return fstatSync(descriptor) !== undefined
  } catch {
    return false
  }
}

/** Threads that plugins have started from this one. Node ends them with it. */
const threads = new Set<Worker>()

/** Tells the primary of each thread that plugins start. */
export function watchThreads(post: (message: ToPrimary) => void): void {
  subscribe('worker_threads', (message) => {
    const { worker } = message as { worker: Worker }
    const { threadId } = worker
    const { plugin = null, handler = null } = causality.getStore()?.origin ?? {}
    threads.add(worker)
    post({ type: 'thread-started', id: threadId, starter: { plugin, handler } })
    worker.once('exit', () => {
      threads.delete(worker)
      post({ type: 'thread-ended', id: threadId })
    })
  })
}

interface WasmMemory {
  readonly buffer: ArrayBufferLike
}

/** The shared memory that this thread has made: V8 counts it for no thread. What a WebAssembly module makes by itself is left out. */
export class SharedBuffers {
  /** As far as it is known without a look: with what has become garbage, and without what has grown. */
  bytes = 0
  readonly #made = new Set<WeakRef<SharedArrayBuffer | WasmMemory>>()

  /** Counts what is made from now on. */
  watch(): void {
    counted('SharedArrayBuffer', globalThis, (made: SharedArrayBuffer) => this.#add(made))
    counted('Memory', Reflect.get(globalThis, 'WebAssembly'), (made: WasmMemory) => {
      if (made.buffer instanceof SharedArrayBuffer) this.#add(made)
    })
  }

  #add(made: SharedArrayBuffer | WasmMemory): void {
    this.bytes += bytesOf(made)
    this.#made.add(new WeakRef(made))
  }

  /** Looks at all that is left, which then stays until the end of this turn of the loop: after a collection of garbage, not before one. */
  look(): void {
    this.bytes = 0
    for (const reference of this.#made) {
      const each = reference.deref()
      if (each === undefined) this.#made.delete(reference)
      else this.bytes += bytesOf(each)
    }
  }
}

const bytesOf = (each: SharedArrayBuffer | WasmMemory): number =>
  'buffer' in each ? each.buffer.byteLength : each.byteLength

/** Puts a proxy in place of a class, which is told of all that is made: `instanceof`, subclasses, `slice` and clones know no difference. */
function counted<Made extends object>(name: string, holder: object, onMade: (made: Made) => void): void {
  const plain = Reflect.get(holder, name) as new () => Made
  const proxy = new Proxy(plain, {
    construct: (target, args, newTarget) => {
      const made = Reflect.construct(target, args, newTarget) as Made
      onMade(made)
      return made
    },
  })
  // Frozen, it cannot be: then what is made by `slice` is not counted.
  Reflect.defineProperty(plain.prototype, 'constructor', { value: proxy, writable: true, configurable: true })
  Reflect.defineProperty(holder, name, { value: proxy, writable: true, configurable: true })
}

/** What a plugin starts after the thread has let go keeps it for this long at most, milliseconds. */
const LET_GO_MS = 50

/** Undocumented, deprecated in the documentation only, and in every version so far. */
interface Handles {
  _getActiveHandles?: () => { unref?: () => void }[]
}

// Taken before plugins can replace it.
const handlesOf = (process as Handles)._getActiveHandles?.bind(process) ?? (() => [])

/**
 * Lets go of everything that keeps the loop of this thread alive: ports, sockets, timers. What is left is what the loop itself waits for,
 * native calls above all. A thread that is ended while one of them is under way aborts the process, where the call ends in an addon that then calls
 * JavaScript (nodejs/node#34567).
 * @param onFree called when nothing is under way any more; the thread ends by itself unless that keeps it
 */
export function letGo(onFree: () => void): void {
  clearInterval(releasing)
  if (releasing === undefined) {
    process.once('beforeExit', () => {
      clearInterval(releasing)
      onFree()
    })
  }
  releasing = setInterval(release, LET_GO_MS).unref()
  release()
}

/** A stop in its callback ends it: then it is begun once more. */
let releasing: NodeJS.Timeout | undefined

function release(): void {
  for (const handle of handlesOf()) handle.unref?.()
  for (const thread of threads) thread.unref()
  uncountTimers()
  uncountLostImmediates()
}
