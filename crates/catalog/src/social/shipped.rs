//! The cells that come with the product, as text: the demo writes them beside its catalog, tests
//! read them.

/// Name and text of each file of `catalog/social`, by platform.
pub const SHIPPED: [(&str, &str); 20] = [
    ("bilibili.toml", include_str!("../../../../catalog/social/bilibili.toml")),
    ("douyin.toml", include_str!("../../../../catalog/social/douyin.toml")),
    ("instagram.toml", include_str!("../../../../catalog/social/instagram.toml")),
    ("kuaishou.toml", include_str!("../../../../catalog/social/kuaishou.toml")),
    ("lemon8.toml", include_str!("../../../../catalog/social/lemon8.toml")),
    ("linkedin.toml", include_str!("../../../../catalog/social/linkedin.toml")),
    ("pipixia.toml", include_str!("../../../../catalog/social/pipixia.toml")),
    ("reddit.toml", include_str!("../../../../catalog/social/reddit.toml")),
    ("threads.toml", include_str!("../../../../catalog/social/threads.toml")),
    ("tiktok.toml", include_str!("../../../../catalog/social/tiktok.toml")),
    ("toutiao.toml", include_str!("../../../../catalog/social/toutiao.toml")),
    ("twitter.toml", include_str!("../../../../catalog/social/twitter.toml")),
    ("wechat-channels.toml", include_str!("../../../../catalog/social/wechat-channels.toml")),
    ("wechat-mp.toml", include_str!("../../../../catalog/social/wechat-mp.toml")),
    ("wechat-search.toml", include_str!("../../../../catalog/social/wechat-search.toml")),
    ("weibo.toml", include_str!("../../../../catalog/social/weibo.toml")),
    ("xiaohongshu.toml", include_str!("../../../../catalog/social/xiaohongshu.toml")),
    ("xigua.toml", include_str!("../../../../catalog/social/xigua.toml")),
    ("youtube.toml", include_str!("../../../../catalog/social/youtube.toml")),
    ("zhihu.toml", include_str!("../../../../catalog/social/zhihu.toml")),
];
