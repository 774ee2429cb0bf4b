import { Agent, request } from 'undici'

export default (get: (name: string) => string) => {
  const url = get('TRIAL_HTTP')
  const dispatcher = new Agent({ connections: 4 })
  return async () => (await request(`${url}/hello`, { dispatcher })).body.json()
}
