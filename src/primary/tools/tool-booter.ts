// The boot of the primary's tools, and the next one of a tool whose server was away.
import { isMisconfigured } from '../../core/errors/catalogue.ts'
import { headOf, messageOf } from '../../core/errors/description.ts'
import { RECOVERED } from '../../runtime/kernel/proxy.ts'
import type { ThreadKernel } from '../../runtime/kernel/thread.ts'
import type { Health } from '../health/health.ts'

/** First pause before a tool is booted again, milliseconds; each further pause is twice as long as the one before. */
const PAUSE_MS = 500
const MAX_PAUSE_MS = 5000

/**
 * Boots the tools of the primary. When a tool fails, the process serves what it can and is not ready. A tool whose server is away is
 * booted again until the server is there.
 */
export class ToolBooter {
  readonly #kernel: ThreadKernel
  readonly #health: Health
  /** Why tools did not boot, by tool. */
  readonly #faults = new Map<string, string>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  #isStopped = false

  constructor(kernel: ThreadKernel, health: Health) {
    this.#kernel = kernel
    this.#health = health
  }

  /** @param isDevelopment somebody fixes it while the process runs @throws what no other start would fix, but for development */
  async bootAll(isDevelopment: boolean): Promise<void> {
    await this.#kernel.toolbox.boot((tool, error) => {
      if (!isDevelopment && isMisconfigured(error)) throw error
      this.#failed(tool, error, PAUSE_MS)
    })
  }

  get reasons(): string[] {
    return [...this.#faults].map(([tool, fault]) => `tool ${tool} did not boot: ${fault}`)
  }

  /** What kept a tool from booting is fixed: boots it again. Does nothing for one that has booted. */
  async fixed(tool: string): Promise<void> {
    if (this.#faults.has(tool) && !this.#timers.has(tool)) await this.#bootAgain(tool, PAUSE_MS)
  }

  stop(): void {
    this.#isStopped = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
  }

  #failed(tool: string, error: unknown, pauseMs: number): void {
    // Its further lines show the place, for the log.
    const fault = headOf(messageOf(error))
    const again = this.#kernel.toolbox.mayBootLater(tool) && !this.#isStopped
    this.#health.setTool(tool, 'DEAD', fault)
    if (this.#faults.get(tool) !== fault) {
      this.#kernel.writeLog(
        'ERROR',
        `Tool ${tool} did not boot${again ? ' and is tried again' : ''}: ${messageOf(error)}`,
        tool,
      )
    }
    this.#faults.set(tool, fault)
    if (again) this.#timers.set(tool, setTimeout(() => void this.#bootAgain(tool, pauseMs), pauseMs).unref())
  }

  async #bootAgain(tool: string, pauseMs: number): Promise<void> {
    try {
      await this.#kernel.toolbox.bootAgain(tool)
    } catch (error) {
      this.#failed(tool, error, Math.min(MAX_PAUSE_MS, pauseMs * 2))
      return
    }
    this.#faults.delete(tool)
    this.#health.setTool(tool, 'OK', RECOVERED)
    this.#kernel.writeLog('INFO', `Tool ${tool} has booted`, tool)
  }
}
