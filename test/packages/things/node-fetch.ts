import fetch from 'node-fetch'

export default (get: (name: string) => string) => {
  const url = get('TRIAL_HTTP')
  return async () => (await fetch(`${url}/hello`)).json()
}
