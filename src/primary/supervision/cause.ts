// Which plugin is proved to have ended a lane or a process.
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import type { Origin } from '../../contracts/tracing.ts'
import { placeText, type StackFrame, shown } from '../../core/errors/places.ts'
import { pluginIn } from '../flight/work.ts'

/** What is known of the end of a lane or of a process. */
interface End {
  /** Where the thread stood or what it threw, innermost frame first; empty when unknown. */
  readonly stack: readonly StackFrame[]
  /** The handler that had made the timer, socket or promise whose callback ended the thread; null when unknown. */
  readonly origin: Origin | null
  /** File of the plugin that was booting, alone; null when there is none. */
  readonly bootCulprit: string | null
  /** Work in flight. */
  readonly works: readonly WorkInFlight[]
  /** Nothing but work in flight can have ended it. */
  readonly isAloneProof: boolean
  /** Absolute path of each plugin's file, by plugin. */
  readonly files: Readonly<Record<string, string>>
  /** True for files of the application, whose lines are worth showing. */
  isOwnFile(file: string): boolean
}

/** Returns the handler that is proved to have ended a lane or the process, with its line; null where nothing proves it. */
export function causeOf(end: End): BlackBox['guilty'] {
  const { stack, origin, bootCulprit, works, isAloneProof } = end
  const frame = stack.find(({ file }) => end.isOwnFile(file))
  const line = frame === undefined ? null : placeText(frame)
  const plugin = pluginIn(stack, end.files)
  if (plugin !== undefined) {
    const own = works.filter((work) => work.plugin === plugin)
    const handler = origin?.bootFile !== undefined ? origin.handler : own.length === 1 ? own[0]!.name : null
    return { plugin, handler, line, evidence: 'stack' }
  }
  const place = line ?? (bootCulprit === null ? null : shown(bootCulprit))
  if (origin !== null) return { plugin: origin.plugin, handler: origin.handler, line: place, evidence: 'origin' }
  if (bootCulprit !== null) return { plugin: null, handler: null, line: place, evidence: 'alone' }
  if (works.length === 1 && isAloneProof) {
    return { plugin: works[0]!.plugin, handler: works[0]!.name, line, evidence: 'alone' }
  }
  return line === null ? null : { plugin: null, handler: null, line, evidence: 'stack' }
}
