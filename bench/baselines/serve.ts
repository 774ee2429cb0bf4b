// Shared by the baseline servers: the address, the `ready` message, and an orderly end, so that profiles are written.

export const host = process.env.HTTP_HOST ?? '127.0.0.1'
export const port = Number(process.env.HTTP_PORT ?? 8000)

export function announceReady(): void {
  process.on('SIGTERM', () => process.exit(0))
  process.send?.('ready')
}
