import type { EventEmitter } from 'node:events'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { devNull } from 'node:os'
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

/** From now on it is known which handler has opened a file: the process has a limited number of descriptors, and all plugins share it. */
export function watchOpenFiles(): void {
  const opened = (descriptor: number): void => {
    const origin = causality.getStore()?.origin
    if (origin != null) openers.set(descriptor, origin)
  }
  const builtin = fs as unknown as Record<string, unknown>
  builtin.openSync = (...args: Parameters<typeof openSync>) => {
    const descriptor = openSync(...args)
    opened(descriptor)
    return descriptor
  }
  builtin.open = (...args: unknown[]) => {
    const callback = args.at(-1)
    if (typeof callback === 'function') {
      args[args.length - 1] = (error: Error | null, descriptor: number) => {
        if (!error) opened(descriptor)
        ;(callback as Opened)(error, descriptor)
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
    opened(fd)
    // It is one, undeclared.
    ;(handle as unknown as EventEmitter).once('close', () => openers.delete(fd))
    return handle
  }
  syncBuiltinESMExports()
}

/** False when the process has no file descriptor left: then nothing more can boot. */
export function isDescriptorLeft(): boolean {
  try {
    closeSync(openSync(devNull, 'r'))
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code !== 'EMFILE' && code !== 'ENFILE'
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
