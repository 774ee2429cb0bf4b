// Whether a debugger is attached to this process. While one is, no time limit holds; when it is gone, all of them begin anew.
import { steadyMs } from '../../core/schedule/clock.ts'
import { ESTABLISHED, socketsAt } from '../http/listening.ts'

/** While the inspector listens, its connections are looked at this often, milliseconds. */
const LOOK_MS = 500

let isConnected = false
let lookedMs = Number.NEGATIVE_INFINITY

const inspectorUrl = (): string | undefined => process.getBuiltinModule('node:inspector').url()

/** True while the inspector of this process listens: `--inspect`, SIGUSR1, or an editor that has opened it. */
export const isInspected = (): boolean => inspectorUrl() !== undefined

/** True while a debugger is connected to the inspector. The inspector does not say so; Linux does, and where it does not, an open inspector counts. */
export function isDebugged(): boolean {
  const url = inspectorUrl()
  if (url === undefined) return false
  const nowMs = steadyMs()
  if (nowMs - lookedMs < LOOK_MS) return isConnected
  lookedMs = nowMs
  const sockets = socketsAt(Number(new URL(url).port))
  // Not even the socket that listens is seen: this is no Linux.
  isConnected = sockets.length === 0 || sockets.some(({ state }) => state === ESTABLISHED)
  return isConnected
}
