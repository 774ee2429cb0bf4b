/** Reports the state of this process to the service manager. Each call resolves when the manager has the message, or will never get it. */
export declare class ServiceManager {
  /**
   * @param socket `NOTIFY_SOCKET`; the command reads it from the environment by itself
   * @param onFault called once, however often it fails
   */
  constructor(socket: string | undefined, onFault: (message: string) => void)
  /** The process has started or reloaded, and takes traffic. */
  ready(status: string): Promise<void>
  /** Call `ready` when the reload is over, however it ended. */
  reloading(status: string): Promise<void>
  /** @param withinMs the manager waits so long for the end, whatever the unit says */
  stopping(status: string, withinMs?: number): Promise<void>
  /** The loop turns: the manager ends a process that does not say so in time (`WatchdogSec`). */
  alive(): Promise<void>
  /** A status text for people, without a change of state. */
  status(status: string): Promise<void>
}
