import type { EventEmitter } from 'node:events'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { constants, devNull } from 'node:os'
import { causality, type Origin } from '../core/causality/context.ts'
import type { Holder } from '../transport/messages.ts'

/** Handlers that a report names at most. */
const HOLDERS_MAX = 10
/** A boot has to have opened so many to be why none is left: another lane may boot the same just then, and have them. */
const HELD_MIN = 64

type Opened = (error: Error | null, descriptor: number) => void

const { open, openSync, close, closeSync, lstatSync } = fs
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

/** A handle that nobody has closed is closed when it is collected. True where the system does not tell. */
function isOpen(descriptor: number): boolean {
  return (
    process.platform !== 'linux' || lstatSync(`/proc/self/fd/${descriptor}`, { throwIfNoEntry: false }) !== undefined
  )
}
