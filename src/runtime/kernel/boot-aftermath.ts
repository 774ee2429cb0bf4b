import { steadyMs } from '../../core/schedule/steady-time.ts'
import { turn } from '../../core/schedule/turn.ts'

/** How often it is looked at what is still under way, milliseconds. */
const LOOK_MS = 10
/** Of `process.getActiveResourcesInfo`: calls that end by themselves. Sockets, servers and ports stay for as long as a service runs. */
const CALL = /Req(?:Callback|Promise|Wrap)$|ConnectWrap$/

/** What plugins have begun in their boot and that goes on after it: timers, and calls of files, names and servers. */
export class BootAftermath {
  readonly #openCalls: () => number
  readonly #timersBefore = timers()

  /**
   * Made before the first plugin boots.
   * @param openCalls to the primary
   */
  constructor(openCalls: () => number = () => 0) {
    this.#openCalls = openCalls
  }

  /**
   * Resolves when what the plugins have begun is over, or the time is. What throws meanwhile ends the lane as the boot itself would.
   * An interval is never over.
   * @param withTimers false: for what is not a timer
   */
  async over(maxMs: number, withTimers = true): Promise<void> {
    const deadlineMs = steadyMs() + maxMs
    // A rejection that nobody handles shows in the first turn of the loop, and a connection is begun in it.
    await turn()
    await turn()
    while (this.#isUnderWay(withTimers) && steadyMs() < deadlineMs)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS).unref())
  }

  #isUnderWay(withTimers: boolean): boolean {
    if (this.#openCalls() > 0 || (withTimers && timers() > this.#timersBefore)) return true
    return count((kind) => CALL.test(kind)) > 0
  }
}

const timers = (): number => count((kind) => kind === 'Timeout')

const count = (isMeant: (kind: string) => boolean): number => process.getActiveResourcesInfo().filter(isMeant).length
