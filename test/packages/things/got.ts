import got from 'got'

export default (get: (name: string) => string) => {
  const url = get('TRIAL_HTTP')
  return () => got(`${url}/hello`).json()
}
