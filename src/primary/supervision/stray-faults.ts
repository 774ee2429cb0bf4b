// Errors of the primary's plugins that nobody catches.
import { messageOf, stackOf } from '../../core/errors/description.ts'
import { isOfPlugin, placeText, shown } from '../../core/errors/places.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { ThreadKernel } from '../../runtime/kernel/thread.ts'
import { framesOfStack } from './stack-probe.ts'

/** Such errors are logged at most this often, milliseconds: an interval may throw at each turn. */
const LOG_PAUSE_MS = 1000

/**
 * Holds what the timers, sockets and promises of the primary's plugins throw where nobody catches it: it ended the process, and again each further
 * one that a guardian started. An error that comes from no plugin's code ends the process still.
 */
export class StrayFaults {
  readonly #kernel: ThreadKernel
  readonly #leaveOut: (plugin: string, reason: string) => void
  #isServing = false
  #loggedMs = Number.NEGATIVE_INFINITY
  #leftOut = 0

  /**
   * @param kernel of the primary
   * @param leaveOut told of a plugin that is not served any more
   */
  constructor(kernel: ThreadKernel, leaveOut: (plugin: string, reason: string) => void) {
    this.#kernel = kernel
    this.#leaveOut = leaveOut
    process.on('uncaughtException', this.#hold)
  }

  /** From now on it may be a handler that has made what throws: it costs its plugin no more than a line of the log. */
  serving(): void {
    this.#isServing = true
  }

  readonly #hold = (error: unknown): void => {
    const { plugins } = this.#kernel
    const stack = framesOfStack(stackOf(error) ?? '')
    const pluginOf = new Map(Object.entries(plugins.files).map(([plugin, file]) => [file, plugin]))
    const frame = stack.find(({ file }) => isOfPlugin(file) && file.startsWith('/'))
    const file = stack.find((each) => pluginOf.has(each.file))?.file ?? plugins.bootingFile
    if (file === null && frame === undefined) return this.#pass(error)
    const plugin = pluginOf.get(file ?? '')
    const what = `${messageOf(error)} (${frame === undefined ? shown(file!) : placeText(frame)})`
    this.#tell(plugin ?? shown(file ?? frame!.file), what, error)
    if (file !== null && file === plugins.bootingFile)
      plugins.strayed(`It threw as it booted, where nobody catches it: ${what}`)
    else if (plugin !== undefined && !this.#isServing)
      this.#leaveOut(plugin, `It threw soon after its boot, where nobody catches it: ${what}`)
  }

  /** As Node would do without this. */
  #pass(error: unknown): void {
    process.off('uncaughtException', this.#hold)
    process.nextTick(() => {
      throw error
    })
  }

  #tell(whose: string, what: string, error: unknown): void {
    const nowMs = steadyMs()
    if (nowMs - this.#loggedMs < LOG_PAUSE_MS) {
      this.#leftOut++
      return
    }
    const before = this.#leftOut === 0 ? '' : `; ${this.#leftOut} more errors before this one`
    this.#loggedMs = nowMs
    this.#leftOut = 0
    this.#kernel.writeLog('ERROR', `${whose} threw where nobody catches it: ${what}${before}`, 'kernel', {
      stack: stackOf(error),
    })
  }
}
