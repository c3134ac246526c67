//! The whole topology with BIRD in three places.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::netns::bird::{Bird, router_config, site_config};
use crate::netns::routes::RouteWatch;
use crate::netns::{Namespace, join};

/// Two sites, a router and a client. Fields are dropped in order: processes before their namespaces.
pub struct Lab {
    /// Watches the router's routes.
    pub routes: RouteWatch,
    /// The three BIRDs: site 1, site 2, router.
    pub birds: [Bird; 3],
    /// Site 1 and site 2.
    pub sites: [Namespace; 2],
    /// The router.
    pub router: Namespace,
    /// The client.
    pub client: Namespace,
    /// Files of the run.
    pub folder: tempfile::TempDir,
}

/// The next hop at the router that means site 1 or 2, for IPv4.
pub const SITE_V4: [&str; 2] = ["198.51.100.2", "198.51.100.6"];
/// The same for IPv6.
pub const SITE_V6: [&str; 2] = ["2001:db8:1::2", "2001:db8:2::2"];

impl Lab {
    /// Makes it and waits until both BGP sessions stand.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        // The daemons run as somebody else and read their files in it.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("the folder is ours");
        let sites = [Namespace::new("a"), Namespace::new("b")];
        let (router, client) = (Namespace::new("r"), Namespace::new("c"));
        join(
            (&router, "r1", "198.51.100.1/30", "2001:db8:1::1/64"),
            (&sites[0], "up0", "198.51.100.2/30", "2001:db8:1::2/64"),
        );
        join(
            (&router, "r2", "198.51.100.5/30", "2001:db8:2::1/64"),
            (&sites[1], "up0", "198.51.100.6/30", "2001:db8:2::2/64"),
        );
        join(
            (&router, "rc", "198.51.100.9/30", "2001:db8:3::1/64"),
            (&client, "c0", "198.51.100.10/30", "2001:db8:3::2/64"),
        );
        router.sysctl("net.ipv4.ip_forward=1");
        router.sysctl("net.ipv6.conf.all.forwarding=1");
        for (site, gateway) in sites.iter().zip(["198.51.100.1", "198.51.100.5"]) {
            site.ip("link add rhi0 type bridge");
            site.ip("link set rhi0 up");
            site.ip(&format!("route add default via {gateway}"));
        }
        client.ip("route add default via 198.51.100.9");
        let birds = [
            bird(&sites[0], folder.path(), "site1", &site_config(65001, SITE_V4[0], "198.51.100.1", SITE_V6[0])),
            bird(&sites[1], folder.path(), "site2", &site_config(65002, SITE_V4[1], "198.51.100.5", SITE_V6[1])),
            bird(&router, folder.path(), "router", &router_config()),
        ];
        birds[2].wait_established("site1");
        birds[2].wait_established("site2");
        let routes = RouteWatch::start(&router);
        Self { routes, birds, sites, router, client, folder }
    }

    /// The next hop of the router's route to an address; `None`: no route.
    pub fn via(&self, vip: &str) -> Option<IpAddr> {
        let family = if vip.contains(':') { "-6" } else { "-4" };
        let output = Command::new("ip").args(["-n", self.router.name(), family, "route", "show", vip]).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace().skip_while(|word| *word != "via").nth(1)?.parse().ok()
    }

    /// The site that the route leads to, 1 or 2; `None`: no route.
    pub fn site_of(&self, vip: &str) -> Option<usize> {
        let via = self.via(vip)?.to_string();
        let hops = if vip.contains(':') { SITE_V6 } else { SITE_V4 };
        hops.iter().position(|hop| *hop == via).map(|index| index + 1)
    }
}

/// The next hop that means a site (1 or 2) for this VIP.
pub fn hop(vip: &str, site: usize) -> IpAddr {
    let hops = if vip.contains(':') { SITE_V6 } else { SITE_V4 };
    hops[site - 1].parse().expect("an address")
}

fn bird(namespace: &Namespace, folder: &Path, name: &str, config: &str) -> Bird {
    Bird::start(namespace, folder, name, config)
}
