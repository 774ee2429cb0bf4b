// What the baseline servers share: where to listen, the word that they do, and a clean end, so that profiles are written.

export const host = process.env.HTTP_HOST ?? '127.0.0.1'
export const port = Number(process.env.HTTP_PORT ?? 8000)

export function announceReady(): void {
  process.on('SIGTERM', () => process.exit(0))
  process.send?.('ready')
}
