import { createClient } from 'redis'

export default (get: (name: string) => string) => {
  const client = createClient({ url: get('TRIAL_REDIS') })
  client.on('error', () => {})
  const connected = client.connect()
  return async () => {
    await connected
    await client.set('weft', 'thread')
    return client.get('weft')
  }
}
