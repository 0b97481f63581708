import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { send } from "./api";
import { Failure, Loading } from "./ui";

// lazy is a view that is loaded when it is first shown, so that the first paint does not wait for all views. It tries again
// until it is loaded.
export function lazy(load: () => Promise<{ default: ComponentType<any> }>): ComponentType<any> {
  let loaded: ComponentType<any> | undefined;
  return function Lazy(props) {
    const [, shown] = useState(() => loaded); // a component is a function, which useState would call
    const [failure, fail] = useState<unknown>();
    useEffect(() => {
      if (loaded) return;
      let timer = 0, gone = false;
      const turn = async () => {
        try {
          loaded = (await load()).default;
          shown(() => loaded);
          fail(undefined);
        } catch {
          fail(await send("readyz", {}).then(() => "This view could not be loaded. Reload the page.", (lost) => lost));
          if (!gone) timer = window.setTimeout(turn, 3000);
        }
      };
      void turn();
      return () => {
        gone = true;
        clearTimeout(timer);
      };
    }, []);
    if (failure) return <Failure of={failure} />;
    return loaded ? <>{((View) => <View {...props} />)(loaded)}</> : <Loading />;
  };
}
